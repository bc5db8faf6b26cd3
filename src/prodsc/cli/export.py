"""prodsc export RUN: labels joined to the input, images by cluster, a model card, a map, an ONNX file."""

from pathlib import Path
from typing import Any

import click

from prodsc import adapters
from prodsc import export as exports
from prodsc.cli.output import echo
from prodsc.export import cards, onnx_file, tables
from prodsc.export.images import check_folder
from prodsc.export.tables import map_places
from prodsc.export.targets import check_target
from prodsc.registry import load
from prodsc.runs.past_run import open_run
from prodsc.runs.run import RESULT

PATH = click.Path(path_type=Path)


@click.command()
@click.argument("run", type=PATH)
@click.option("--table", type=PATH, metavar="FILE", help="The input with cluster and confidence: .csv, .tsv, .parquet.")
@click.option("--no-features", is_flag=True, help="Leave the features of an array (.npy, .npz, ...) out of --table.")
@click.option("--map", "coordinates", is_flag=True, help="Add the place of each row on the map to --table: x and y.")
@click.option("--folders", type=PATH, metavar="DIR", help="One folder of images per cluster.")
@click.option("--images", metavar="DIR|FILE|NAME", help="The images of the rows, when the input is not the images.")
@click.option("--copy", is_flag=True, help="Copy images; otherwise they are linked to.")
@click.option("--card", type=PATH, metavar="FILE", help="A model card in Markdown (.md).")
@click.option("--licence", "--license", metavar="TEXT", help="Goes on the card, for instance 'CC BY 4.0'.")
@click.option("--atlas", type=PATH, metavar="FILE", help="A map for Embedding Atlas (.parquet).")
@click.option("--onnx", type=PATH, metavar="FILE", help="The model for programs without PyTorch (.onnx).")
@click.option("--data", type=PATH, metavar="FILE", help="Where the input is now, if it was moved after the fit.")
@click.option("--force", is_flag=True, help="Replace what an earlier export wrote.")
def export(
    run: Path,
    table: Path | None,
    no_features: bool,
    coordinates: bool,
    folders: Path | None,
    images: str | None,
    copy: bool,
    card: Path | None,
    licence: str | None,
    atlas: Path | None,
    onnx: Path | None,
    data: Path | None,
    force: bool,
) -> None:
    """Take the results of the run in RUN elsewhere: --table, --folders, --card, --atlas, --onnx, or several."""
    if {table, folders, card, atlas, onnx} == {None}:
        raise click.UsageError(
            "say what to export: --table FILE, --folders DIR, --card FILE, --atlas FILE or --onnx FILE."
        )
    if folders is None and (images is not None or copy):
        raise click.UsageError("--images and --copy go with --folders DIR.")
    if table is None and coordinates:
        raise click.UsageError("--map goes with --table FILE.")
    # All targets are checked before the first is written.
    if onnx is not None:
        check_target(onnx, onnx_file.ONNX_SUFFIXES, force)
        model = load(run)  # also a folder that `save` wrote, which is no run
        onnx_file.check_labels_by_network(model)
        if {table, folders, card, atlas} == {None}:
            _write_onnx(onnx, model, force)
            return
    past = open_run(run, data)
    if table is not None:
        check_target(table, tables.TABLE_SUFFIXES, force, [past.request.file])
    if folders is not None:
        check_folder(folders, force)
    if card is not None:
        check_target(card, cards.CARD_SUFFIXES, force)
    if atlas is not None:
        check_target(atlas, (".parquet",), force, [past.request.file])
    if table is not None:
        past.data  # noqa: B018 - these rows, and no others, have these labels
        source = str(past.request.file)
        more: Any = {"rows": past.data.kept, "names": past.names, "features": not no_features, "force": force}
        places = map_places(past.model, past.data.X) if coordinates else None
        exports.table(table, source, past.labels, past.confidence, places=places, **more)
        echo(f"{len(past.labels):,} rows with their cluster: {table}")
    if folders is not None:
        shown = str(past.request.file) if images is None else images
        exports.folders(folders, shown, past.labels, past.confidence, past.ids, copy=copy, force=force)
        echo(f"{len(past.labels):,} images in {len(set(past.labels.tolist()))} folders: {folders}")
    if card is not None:
        model, rows = past.model, past.data
        exports.card(card, model, rows.X, rows.y, licence=licence, folder=run, about=past.result, force=force)
        echo(f"model card: {card} ({RESULT} and the model stay in {run})")
    if atlas is not None:
        adapters.embedding_atlas(
            atlas, past.model, past.data, table=str(past.request.file), names=past.names, force=force
        )
        echo(f"map: {atlas}; open it with: embedding-atlas {atlas} --x x --y y --neighbors neighbors")
    if onnx is not None:
        _write_onnx(onnx, past.model, force)


def _write_onnx(path: Path, model: Any, force: bool) -> None:
    exports.onnx(path, model, force=force)
    echo(f"ONNX: {path} (in: {onnx_file.INPUT}; out: {onnx_file.LABELS}, {onnx_file.PROBABILITIES})")
