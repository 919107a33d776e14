"""Checkpoints for a loss landscape: only those that `intervals` asks for."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from strobe.callbacks.summary.destination import Destination
from strobe.callbacks.summary.options import Landscape

_FOLDER, _METADATA = "ckpt_dir", "train_metadata.json"


class Checkpoints:
    """`{summary_dir}/ckpt_dir`, as MindSpore's SummaryLandscape reads it."""

    def __init__(self, to: Destination, landscape: Landscape | None) -> None:
        self._to, self._landscape = to, landscape
        self._files: dict[str, str] = {}
        self.steps_per_epoch: int | None = None

    def begin(self) -> None:
        """Settings of the landscape are hyperparameters, with or without checkpoints."""
        if self._landscape is not None:
            self._to.hyperparameters({"collect_landscape": self._landscape.to_json()})

    def save(self, unit: str, number: int, model: Any) -> None:
        chosen = self._landscape
        if chosen is None or model is None or not chosen.is_chosen(unit, number):
            return
        folder = self._folder()
        if folder is None:
            return
        name = f"{type(model).__name__}_{number}_{unit}.ckpt"
        if _save(model, folder / name):
            self._files[str(number)] = str(folder / name)

    def _folder(self) -> Path | None:
        home = self._to.files
        if home is None:
            return None
        folder = home / _FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def write_metadata(self) -> None:
        chosen = self._landscape
        if chosen is None or not self._files:
            return
        folder = self._folder()
        if folder is None:
            return
        data = chosen.to_json()
        groups = {str(number): list(one) for number, one in enumerate(chosen.intervals)}
        del data["intervals"]
        data |= {"epoch_group": groups, "model_params_file_map": self._files,
                 "step_per_epoch": self.steps_per_epoch}  # fmt: skip
        path = folder / _METADATA
        made = path.with_suffix(".tmp")
        made.write_text(json.dumps(data), encoding="utf-8")
        os.replace(made, path)


def _save(model: Any, path: Path) -> bool:
    mindspore, torch = sys.modules.get("mindspore"), sys.modules.get("torch")
    if mindspore is not None and isinstance(model, mindspore.nn.Cell):
        mindspore.save_checkpoint(model, str(path))
        return True
    if torch is not None and isinstance(model, torch.nn.Module):
        torch.save(model.state_dict(), path)
        return True
    return False
