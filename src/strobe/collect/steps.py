"""Count steps while training runs, precisely enough to place windows; ingest has the final word."""


class StepCount:
    """A step is a cycle of optimizers: it ends with the update of the last one in the cycle.

    That counts a GAN's two optimizers once, and gradient accumulation by its updates. Without any
    optimizer (a manual update) each backward pass counts; `strobe.step()` overrides both.
    """

    # After this many backward passes without an update, the script must be updating manually.
    _PATIENCE = 256

    def __init__(self) -> None:
        self.done = 0
        # Whether a step ended (or the first began) since windows were last asked to begin or end,
        # and whether to ask them.
        self.is_new = self.is_watched = True
        self.has_optimizer = False
        # Until the script calls strobe.step(), or an optimizer has made an update.
        self.are_backwards = True
        self._by_hand = False
        self._backwards = 0
        self._closer: int | None = None
        self._cycle: set[int] = set()
        self._last = 0
        self._is_counted = False
        # The only optimizer of the cycle: its next update ends a step again.
        self._alone: int | None = None

    @property
    def now(self) -> int:
        """The current step, counted from 1."""
        return self.done + 1

    def said(self) -> None:
        if not self._by_hand:
            self._by_hand, self.done = True, 0
            self.are_backwards, self.is_watched = False, True
        self.done += 1
        self.is_new = self.is_watched

    def updated(self, optimizer: int) -> None:
        if self._by_hand:
            return
        self.is_new = self.is_watched
        if optimizer == self._alone:
            self.done += 1
            return
        if self._closer is None:
            self._closer, self.done = optimizer, 0
            self.are_backwards, self.is_watched, self.is_new = False, True, True
        if optimizer in self._cycle:
            self.done += not self._is_counted
            self._closer, self._is_counted = self._last, False
            self._cycle.clear()
        self._cycle.add(optimizer)
        self._last = optimizer
        if optimizer == self._closer and not self._is_counted:
            self.done += 1
            self._is_counted = True
        is_alone = len(self._cycle) == 1 and optimizer == self._closer and self._is_counted
        self._alone = optimizer if is_alone else None

    def went_backward(self) -> None:
        if not self.are_backwards:
            return
        self._backwards += 1
        if not self.has_optimizer or self._backwards > self._PATIENCE:
            self.done += 1
            self.is_new = self.is_watched
