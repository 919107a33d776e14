"""Count steps while training runs: good enough to place windows; ingest decides for good."""


class StepCount:
    """A step is a cycle of optimizers: it ends with the update of the one that closes the cycle.

    That counts a GAN's two optimizers once, and gradient accumulation by its updates. Without any
    optimizer (an update written by hand) each backward pass counts; `strobe.step()` overrides both.
    """

    # Backward passes without any update after which the update must be written by hand.
    _PATIENCE = 256

    def __init__(self) -> None:
        self.done = 0
        self.has_optimizer = False
        self._by_hand = False
        self._backwards = 0
        self._closer: int | None = None
        self._cycle: set[int] = set()
        self._last = 0
        self._is_counted = False

    @property
    def now(self) -> int:
        """The step going on, counted from 1."""
        return self.done + 1

    def said(self) -> None:
        if not self._by_hand:
            self._by_hand, self.done = True, 0
        self.done += 1

    def updated(self, optimizer: int) -> None:
        if self._by_hand:
            return
        if self._closer is None:
            self._closer, self.done = optimizer, 0
        if optimizer in self._cycle:
            self.done += not self._is_counted
            self._closer, self._is_counted = self._last, False
            self._cycle.clear()
        self._cycle.add(optimizer)
        self._last = optimizer
        if optimizer == self._closer and not self._is_counted:
            self.done += 1
            self._is_counted = True

    def went_backward(self) -> None:
        if self._by_hand or self._closer is not None:
            return
        self._backwards += 1
        if not self.has_optimizer or self._backwards > self._PATIENCE:
            self.done += 1
