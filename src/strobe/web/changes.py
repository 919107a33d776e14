"""Renaming, tagging and deleting runs, on request, and only what lies in the base directory."""

import os
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strobe.collect.analysis import LOG_FILE
from strobe.collect.on_demand.requests import INBOX_DIR, LIVE_DIR
from strobe.errors import StrobeError, UsageError
from strobe.ingest.importing import sources
from strobe.ingest.recording.rank_state import PROBLEMS_FILE
from strobe.messages import message
from strobe.model.manifest import MANIFEST_FILE
from strobe.store.run_folder import rank_dirs, removed
from strobe.web import tags
from strobe.web.answering.run_content import state_of
from strobe.web.base_dir import BaseDir, one_name

# What Strobe writes into the folder of a run. Anything else there is the user's, and stays.
_FILES = (MANIFEST_FILE, tags.TAGS_FILE, PROBLEMS_FILE, LOG_FILE, "nested.txt")
_FOLDERS = re.compile(r"rank_\d+|timeline")


def change(base: BaseDir, what: str, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """`what` is rename, tags or delete. Raises StrobeError, and then nothing was changed."""
    run = base.find(name)
    try:
        return CHANGES[what](base, run, body)
    except FileNotFoundError as error:
        raise removed(run) from error
    except PermissionError as error:
        raise UsageError.of(
            "errors/pages.not-writable", where=name, reason=os.strerror(error.errno or 0)
        ) from error


def _rename(base: BaseDir, run: Path, body: Mapping[str, Any]) -> dict[str, Any]:
    wanted = one_name(body.get("name"))
    target = run.with_name(wanted)
    if target == run:
        return {"ok": True, "id": base.name_of(run)}
    _refuse_live(base, run, "renamed")
    if os.path.lexists(target):
        raise UsageError.of("errors/pages.name-taken", name=wanted)
    os.rename(run, target)
    return {"ok": True, "id": base.name_of(target)}


def _tag(base: BaseDir, run: Path, body: Mapping[str, Any]) -> dict[str, Any]:
    wanted = tags.checked(body.get("tags"))
    tags.write(run, wanted)
    return {"ok": True, "id": base.name_of(run), "tags": wanted}


def _delete(base: BaseDir, run: Path, body: Mapping[str, Any]) -> dict[str, Any]:
    if body.get("confirm") != run.name:
        raise UsageError.of("errors/pages.not-confirmed", name=run.name)
    _refuse_live(base, run, "deleted")
    # First out of sight in one move: nobody meets half a run.
    grave = run.with_name(f".deleted-{secrets.token_hex(8)}")
    os.rename(run, grave)
    is_imported = any(map(sources.is_imported, rank_dirs(grave).values()))
    left = [path for path in grave.iterdir() if not _is_of_the_run(path, is_imported)]
    for path in grave.iterdir():
        if path in left:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    if left:
        os.rename(grave, run)
    else:
        grave.rmdir()
    return {"ok": True, "left": sorted(path.name for path in left)}


def _is_of_the_run(path: Path, is_imported: bool) -> bool:
    """Names that users also give to folders of their own count only if Strobe made the folder."""
    if path.name == sources.UNPACKED:
        return is_imported
    if path.name == LIVE_DIR:
        return (path / INBOX_DIR).is_dir()
    is_folder = _FOLDERS.fullmatch(path.name) is not None
    return is_folder or path.name in _FILES or path.name.startswith(".")


def _refuse_live(base: BaseDir, run: Path, done: str) -> None:
    try:
        _, state = state_of(run)
    except StrobeError:  # it cannot be read, so nobody can be writing it
        return
    if state == "live":
        raise UsageError.of(
            "errors/pages.still-recording",
            where=base.name_of(run),
            done=message(f"errors/pages.{done}"),
        )


CHANGES = {"delete": _delete, "rename": _rename, "tags": _tag}
