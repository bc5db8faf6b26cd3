"""What importing prodsc loads: little, on every system, and without the extras that a user does not need."""

import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import prodsc
from prodsc.cli import COMMANDS, cli
from prodsc.errors import EXTRA_OF
from prodsc.system import peak_memory_mb

HEAVY = ("torch", "matplotlib", "pandas", "sklearn", "scipy", "numpy", "rich", "pyarrow")
PUBLIC = {
    *("PRODSC", "SEDSC", "__version__", "adapters", "compare", "diagnose", "errors", "estimate_k", "export", "load"),
    *("align", "load_dataset", "make", "metrics", "monitor", "open_source", "predict_to_file", "read", "reproduce"),
    *("theory", "tune"),
}
POSIX_ONLY = ("resource", "fcntl", "termios", "pwd", "grp")
EXTRAS = ("click", "rich", "matplotlib", "jinja2", "pyarrow", "psutil", "h5py", "optuna", "PIL")


BLOCK = """
import importlib.machinery, sys
def block(finder, find):
    absent = classmethod(lambda cls, name, *rest: None if name.split(".")[0] in {blocked} else find(name, *rest))
    finder.find_spec = absent
for finder in (importlib.machinery.PathFinder, importlib.machinery.BuiltinImporter):
    block(finder, finder.find_spec)
"""


def python(code, *, blocked=()):
    """Run code in a fresh interpreter in which the blocked modules cannot be imported."""
    return subprocess.run([sys.executable, "-c", BLOCK.format(blocked=blocked) + code], capture_output=True, text=True)


def output(code, *, blocked=()):
    done = python(code, blocked=blocked)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded(code):
    """The heavy libraries that a program loads."""
    return output(f"{code}\nprint('loaded', *({{*sys.modules}} & set({HEAVY!r})))").splitlines()[-1].split()[1:]


# ---- light -----------------------------------------------------------------------------------------------------------


def test_import_prodsc_loads_no_heavy_library():
    assert loaded("import prodsc; prodsc.__version__; prodsc.errors; dir(prodsc)") == []


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["nothing-of-this-name"], []])
def test_the_command_line_loads_no_heavy_library_until_a_command_runs(words):
    code = f"from prodsc.cli import main\ntry: main({words!r})\nexcept SystemExit: pass"
    assert loaded(code) == []


def test_an_estimator_loads_neither_report_nor_paper_nor_command_line():
    found = output("from prodsc import PRODSC; print(*sys.modules)").split()
    rooms = {name.split(".")[1] for name in found if name.startswith("prodsc.")}
    assert rooms.isdisjoint({"baselines", "registry", "report", "runs", "bench", "export", "paper", "cli", "extract"})
    assert {"matplotlib", "click", "jinja2"}.isdisjoint(found)  # scikit-learn loads pandas and rich where they are


def test_the_public_names_are_those_of_all_and_dir():
    assert sorted(prodsc.__all__) == sorted(PUBLIC)
    assert {*dir(prodsc)} >= PUBLIC
    for name in PUBLIC:
        assert getattr(prodsc, name) is not None
    assert prodsc.PRODSC.__module__.startswith("prodsc.pro_dsc")
    assert prodsc.metrics is import_module("prodsc.core.metrics")
    assert prodsc.compare is import_module("prodsc.bench.compare").compare


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'prodsc' has no attribute 'PRODCS'; did you mean 'PRODSC'"):
        prodsc.PRODCS  # noqa: B018


def test_the_list_of_commands_says_what_each_command_says_itself():
    assert [*COMMANDS] == cli.list_commands(None)
    for name, short_help in COMMANDS.items():
        command = cli.get_command(None, name)
        assert command.name == name
        assert short_help == command.get_short_help_str(limit=200), name
    assert output("from prodsc.cli import main; main(['--help'])").count("\n  ") >= len(COMMANDS)


# ---- portable --------------------------------------------------------------------------------------------------------


def test_every_module_can_be_imported_where_there_is_no_posix():
    names = [m.name for m in pkgutil.walk_packages(prodsc.__path__, "prodsc.") if not m.name.endswith("__main__")]
    assert len(names) > 100
    code = f"""
import signal
for name in ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGALRM"):
    delattr(signal, name)
from importlib import import_module
for name in {names!r}:
    import_module(name)
from types import SimpleNamespace
memory = SimpleNamespace(rss=2**20, peak_wset=3 * 2**20)  # as psutil has it on Windows
sys.modules["psutil"] = SimpleNamespace(Process=lambda: SimpleNamespace(memory_info=lambda: memory))
from prodsc.system import machine, peak_memory_mb, versions
print(peak_memory_mb(), machine(), versions())
"""
    assert output(code, blocked=(*POSIX_ONLY, "psutil")).startswith("3.0 {'system': ")
    assert 50 < peak_memory_mb() < 100_000  # MB, here: torch alone takes more than 50


# ---- extras ----------------------------------------------------------------------------------------------------------


def test_an_estimator_needs_no_extra():
    code = """
import numpy as np
from prodsc import PRODSC, load, make
X = np.random.default_rng(0).standard_normal((60, 5))
small = dict(n_components=4, epochs=2, device="cpu", verbose=1)
model = PRODSC(2, **small).fit(X)
import tempfile
with tempfile.TemporaryDirectory() as folder:
    model.save(folder)
    assert (load(folder).predict(X) == model.labels_).all()
    np.save(folder + "/x.npy", X)
    assert (PRODSC(2, **small).fit(folder + "/x.npy").labels_ == model.labels_).all()
assert len(make("ensc", n_clusters=2, verbose=1).fit(X).labels_) == 60
print("fitted")
"""
    assert output(code, blocked=EXTRAS).endswith("fitted\n")


TABLE = ("a table (.csv, .parquet) needs pyarrow", "tables")
MISSING = {
    "import prodsc.cli": ("the command line needs click", "cli"),
    "import prodsc.report.page": ("the report needs matplotlib", "report"),
    "from prodsc import reproduce; reproduce('faces-objects')": ("reproduce needs matplotlib", "paper"),
    "from prodsc import read; read('x.csv')": TABLE,
    "from prodsc import export; export.table('o.csv', 'x.csv', [0, 1])": (
        "a table (.csv, .parquet) needs pyarrow",
        "tables",
    ),
    "from prodsc import compare; compare('x.npy', [0, 1] * 5, seeds=1)": (
        "running trials needs psutil",
        "bench",
    ),
    "from prodsc import read; read('x.h5ad')": ("reading x.h5ad needs h5py", "hdf5"),
    "from prodsc import tune; tune('x.npy', n_clusters=2)": ("prodsc tune needs optuna", "tune"),
}


def test_a_feature_whose_extra_is_missing_says_so_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "x.h5ad").write_bytes(b"\x89HDF\r\n\x1a\n")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((10, 3)))
    code = f"""
for code in {[*MISSING]!r}:
    try:
        exec(code)
        print("no error")
    except Exception as error:
        print(type(error).__name__, error, sep=": ")
"""
    lines = output(code, blocked=EXTRAS).splitlines()
    assert lines == [
        f"MissingExtraError: {cause}, which is not installed; install it with: pip install 'prodsc[{extra}]'"
        for cause, extra in MISSING.values()
    ]


@pytest.mark.parametrize("blocked", [("click",), ("rich",)])
def test_the_script_without_the_libraries_of_the_command_line_prints_one_sentence(blocked):
    code = "from prodsc.__main__ import main; sys.argv[1:] = ['recipes']; main()"
    done = python(code, blocked=blocked)
    assert done.returncode == 1
    assert done.stderr == (
        f"prodsc: the command line needs {blocked[0]}, which is not installed; "
        "install it with: pip install 'prodsc[cli]'\n"
    )


def test_a_fit_on_the_command_line_without_the_report_still_leaves_labels_and_a_model(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((40, 3)))
    small = [
        "--hidden-size",
        "8",
        "--n-components",
        "4",
        "--epochs",
        "2",
        "--warmup-steps",
        "2",
        "--n-init",
        "1",
        "--quiet",
    ]
    words = ["fit", str(tmp_path / "x.npy"), "-k", "2", "--out", str(tmp_path / "run"), *small]
    done = python(f"from prodsc.cli import main; main({words!r})", blocked=("matplotlib", "jinja2", "PIL"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "prodsc: note: report.html is not written: the report needs matplotlib, which is not installed; "
        "install it with: pip install 'prodsc[report]'\n"
    )
    assert {"labels.csv", "model.safetensors", "result.json"} <= {path.name for path in (tmp_path / "run").iterdir()}


def test_every_library_of_an_extra_is_declared_by_that_extra():
    declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    needed = "\n".join(declared["dependencies"])
    for library, extra in EXTRA_OF.items():
        assert any(
            line.lower().startswith({"PIL": "pillow", "lance": "pylance"}.get(library, library))
            for line in extras[extra]
        ), library
        assert not re.search(rf"^{library}\b(?!.*sys_platform)", needed, re.MULTILINE), library
