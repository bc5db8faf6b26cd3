"""Folders of runs and models, packed into one file so that the fuzzer can damage them, and read in every way.

The digests of most damaged folders are made right again: otherwise the manifest hides the damage from what lies
behind it. The others must be refused, or give the labels of the undamaged folder.
"""

import io
import random
import shutil
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from faults.scenarios import TINY, fit, model_of, with_a_stopped_run, with_rows
from faults.tamper import change_value, drop_key, swap_values
from prodsc import PRODSC, files, load
from prodsc.errors import ProdscError
from prodsc.runs.past_run import open_run
from prodsc.runs.run import FitRequest, rows_of, run

GOLDEN = Path(__file__).parents[1] / "golden"


def _packed(folder: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, file.name)


def _finished(folder: Path) -> None:
    with_rows(folder)
    fit(folder)


def _of_run(prepare: Callable[[Path], None]) -> Callable[[Path], None]:
    def make_it(path: Path) -> None:
        prepare(path.parent)  # the run names this place, where its rows stay
        _packed(path.parent / "run", path)
        shutil.rmtree(path.parent / "run")

    return make_it


def check_sentence(error: ProdscError) -> None:
    """An error must be one sentence that a terminal can show."""
    sentence = str(error)
    assert "\n" not in sentence, f"more than one line: {sentence!r}"
    assert sentence[-1] in ".?", f"no sentence: {sentence!r}"
    assert len(sentence) < 2000, f"a sentence of {len(sentence)} characters"
    assert sentence.isprintable(), f"control characters: {sentence!r}"


def _of_model(path: Path) -> None:
    model_of(2).save(path.parent / "model")
    _packed(path.parent / "model", path)
    shutil.rmtree(path.parent / "model")


RUN_FOLDERS: dict[str, Callable[[Path], object]] = {
    "finished.run": _of_run(_finished),
    "stopped.run": _of_run(with_a_stopped_run),
    "model.run": _of_model,
    "version-01.run": lambda path: _packed(GOLDEN / "run", path),
    "version-01-model.run": lambda path: _packed(GOLDEN / "models" / "k-means", path),
}


def read_run_folder(path: Path) -> None:
    """Unpack a damaged folder and use it in every way; a ProdscError is raised if none works."""
    content = path.read_bytes()
    folder = path.parent / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            (folder / Path(info.filename).name).write_bytes(archive.read(info))
    rng = random.Random(content)
    sealed = rng.random() < 0.25  # the digests stay as they were
    if rng.random() < 0.5:
        with suppress(Exception):  # no JSON any more
            rng.choice((swap_values, change_value, drop_key))(rng, rng.choice(sorted(folder.glob("*.json"))))
    if not sealed:
        _seal_again(folder)
    refused = []
    for use in USES:
        try:
            _check(use(folder), sealed and (folder / "manifest.json").exists())
        except ProdscError as error:
            check_sentence(error)
            refused.append(error)
    if len(refused) == len(USES):
        raise refused[0]


def _use_model(folder: Path) -> Any:
    model = load(folder)
    width = model.n_features_in_ if isinstance(model.n_features_in_, int) and 0 < model.n_features_in_ < 100 else 5
    predicted = model.predict(np.ones((3, width), np.float32))
    assert predicted.shape == (3,)
    return model


def _use_run(folder: Path) -> Any:
    run = open_run(folder)
    run.data.X[:1]
    return run.model


def _use_stopped_run(folder: Path) -> Any:
    request = FitRequest.read(folder)
    if request.parameters != TINY:  # another fit, perhaps of many days: it is only checked
        PRODSC.from_flat(**request.parameters).check(rows_of(request))
        return None
    run(request, resume=True)
    return load(folder)


USES = (_use_model, _use_run, _use_stopped_run)


def _check(model: Any, sealed: bool) -> None:
    """Where digests were not made right again, only the labels of the undamaged folder may come out."""
    if sealed and model is not None:
        np.testing.assert_array_equal(model.labels_, model_of(2).labels_)


def _seal_again(folder: Path) -> None:
    """Write the digests of the files as they are now, wherever what has them can still be read."""
    for path in folder.glob("*.safetensors"):
        with suppress(Exception), safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            files.write_tensors(path, tensors, {k: v for k, v in (file.metadata() or {}).items() if k != files.SEAL})
    with suppress(Exception):
        about = files.read_json(folder / "model.json")
        if "sha256" in about:  # version 0.1
            files.write_json(folder / "model.json", about | {"sha256": files.sha256(folder / "model.safetensors")})
    with suppress(Exception):
        content = files.read_json(folder / "manifest.json")
        names = [name for name in content["files"] if (folder / name).is_file()]
        files.write_json(folder / "manifest.json", content | {"files": {n: files.sha256(folder / n) for n in names}})
