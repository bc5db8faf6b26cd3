"""A model on the Hugging Face Hub, or any server that speaks its protocol. Its card is the README."""

import tempfile
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from prodsc import files
from prodsc.errors import InputError, ModelFileError, OutputError, reason_of, require
from prodsc.estimators.model_file import ABOUT, TENSORS
from prodsc.export.cards import card_text
from prodsc.manifest import MANIFEST
from prodsc.registry import load
from prodsc.sources.source import RowsInput

README = "README.md"
MODEL_FILES = (TENSORS, ABOUT, MANIFEST)  # nothing else is downloaded


def push_to_hub(
    model: Any,
    repo: str,
    X: RowsInput,
    y: ArrayLike | None = None,
    *,
    licence: str | None = None,
    private: bool = True,
    endpoint: str | None = None,
    token: str | None = None,
    message: str = "A model of prodsc",
) -> str:
    """Upload a fitted model with its card.

    Parameters
    ----------
    model : estimator
        A fitted model.
    repo : str
        "user/name" on the Hub; it is made if it does not exist.
    X : array-like or path
        The rows it was fitted on. They are measured for the card and not uploaded.
    y : array of shape (n,), optional
        Known classes, only to score.
    licence : str, optional
        Licence of the model, by its name on the Hub, such as "cc-by-4.0".
    private : bool, default=True
        Whether a new repository is visible to its owner only.
    endpoint : str, optional
        Address of another server than the Hub.
    token : str, optional
        Token of the user; by default the one that `hf auth login` has stored.
    message : str
        Of the commit.

    Returns
    -------
    str
        The address of the commit.

    Raises
    ------
    OutputError
        If the server refuses it or cannot be reached.
    MissingExtraError
        If huggingface_hub is not installed (extra `hub`).
    """
    hub = _library(repo, "push_to_hub")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save(folder)
        files.write_text(folder / README, readme(model, repo, X, y, licence))
        try:
            api = hub.HfApi(endpoint=endpoint, token=token)
            api.create_repo(repo, private=private, exist_ok=True)
            commit = api.upload_folder(repo_id=repo, folder_path=folder, commit_message=message)
        except Exception as error:  # of the network, the server or the library
            raise OutputError(
                f"{repo} could not be uploaded ({type(error).__name__}: {reason_of(error)}). Check the name, the "
                "token (`hf auth login`) and the network."
            ) from error
    return str(commit.commit_url)


def from_hub(
    repo: str,
    *,
    revision: str | None = None,
    endpoint: str | None = None,
    token: str | None = None,
    cache_dir: str | Path | None = None,
) -> Any:
    """Download a model that `push_to_hub` uploaded, and load it. Nothing in it can run code.

    Parameters
    ----------
    repo : str
        "user/name" on the Hub.
    revision : str, optional
        Branch, tag or commit. Name a commit to be sure that you always get the same model.
    endpoint : str, optional
        Address of another server than the Hub.
    token : str, optional
        Token of the user; by default the one that `hf auth login` has stored.
    cache_dir : path, optional
        Where downloads are kept.

    Returns
    -------
    Clusterer
        The fitted estimator.

    Raises
    ------
    ModelFileError
        If it cannot be downloaded, is damaged, or is no model of prodsc.
    MissingExtraError
        If huggingface_hub is not installed (extra `hub`).
    """
    hub = _library(repo, "from_hub")
    try:
        folder = hub.snapshot_download(
            repo,
            revision=revision,
            endpoint=endpoint,
            token=token,
            cache_dir=cache_dir,
            allow_patterns=list(MODEL_FILES),
        )
    except Exception as error:  # of the network, the server or the library
        raise ModelFileError(
            f"{repo} could not be downloaded ({type(error).__name__}: {reason_of(error)}). Check the name, the "
            "revision, the token (`hf auth login`) and the network."
        ) from error
    return load(folder)


def readme(model: Any, repo: str, X: RowsInput, y: ArrayLike | None = None, licence: str | None = None) -> str:
    """The card of a model with the facts that the Hub reads at its top.

    Parameters
    ----------
    model : estimator
        A fitted model.
    repo : str
        "user/name" on the Hub.
    X : array-like or path
        The rows it was fitted on.
    y : array of shape (n,), optional
        Known classes, only to score.
    licence : str, optional
        Licence of the model.

    Returns
    -------
    str
        Markdown.
    """
    facts = ["library_name: prodsc", "tags:", "- clustering", "- prodsc"]
    facts += [f"license: {licence}"] if licence else []
    card = card_text(model, X, y, title=repo, licence=licence, folder=repo)
    from_here = card.replace("from prodsc import load\n", "from prodsc import export\n")
    from_here = from_here.replace(f'model = load("{repo}")', f'model = export.from_hub("{repo}")')
    without_command = from_here.replace(f'```console\n$ prodsc predict "{repo}" new.npy -o labels.csv\n```\n\n', "")
    return "---\n" + "\n".join(facts) + "\n---\n\n" + without_command


def _library(repo: str, caller: str) -> Any:
    hub = require("huggingface_hub", extra="hub", caller=caller)
    if repo.count("/") != 1 or not all(repo.split("/")):
        raise InputError(f"the name on the Hub must be 'user/name'; got {repo!r}.")
    return hub
