"""prodsc extract SOURCE --encoder NAME -o features.npy: images or texts to a feature matrix."""

from pathlib import Path
from typing import Any

import click

from prodsc import ranks
from prodsc.cli.output import echo
from prodsc.cli.progress import progress_bar
from prodsc.extract import SHORT_NAMES, Features
from prodsc.extract import extract as extract_features
from prodsc.system import keep_freed_memory


@click.command()
@click.argument("source", metavar="IMAGES|TEXTS")
@click.option("--encoder", required=True, metavar="NAME", help=f"{', '.join(SHORT_NAMES)}, or LIBRARY:MODEL.")
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="A .npy, .npz or .safetensors file.")
@click.option(
    "--checkpoint", type=click.Path(path_type=Path), help="Weights: .safetensors, or a torch file of tensors only."
)
@click.option("--text", "column", metavar="A,B,...", help="The columns of texts in a .csv or .parquet.")
@click.option("--column", "column", hidden=True)
@click.option("--id", metavar="NAME", help="The column with the name of each text in a .csv or .parquet.")
@click.option("--labels-from-folders", is_flag=True, help="Keep the name of each image's sub-folder as its label.")
@click.option("--skip-bad", is_flag=True, help="Leave out items that cannot be read, instead of failing.")
@click.option("--dtype", type=click.Choice(["float32", "float16"]), default="float32", show_default=True)
@click.option("--batch-size", type=click.IntRange(min=1), default=64, show_default=True)
@click.option("--workers", type=click.IntRange(min=1), default=4, show_default=True, help="Threads that load images.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, ...")
@click.option("--overwrite", is_flag=True, help="Replace an existing output file.")
@click.option("--restart", is_flag=True, help="Drop what an interrupted extraction left, instead of continuing it.")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", help="What runs the work.")
@click.option("--processes", type=click.IntRange(min=1), default=1, help="Processes of --engine ray.")
@click.option("--quiet", is_flag=True, help="No progress.")
def extract(source: str, encoder: str, out: Path, quiet: bool, **options: Any) -> None:
    """Encode IMAGES or TEXTS with a pre-trained encoder, one row of features each.

    IMAGES: a folder (searched to the bottom), a .npy or .npz of uint8 images, or the name of a data set. TEXTS: a
    .txt with one per line, or the columns --text of a .csv or .parquet. LIBRARY:MODEL is
    open_clip:ARCHITECTURE/PRETRAINED, timm:NAME or transformers:NAME_OR_FOLDER. After Ctrl-C or a crash, the same
    command continues.
    """
    keep_freed_memory()
    with progress_bar("encode", quiet) as progress:
        features = extract_features(source, encoder, out, progress=progress, **options)
    if ranks.first():
        echo(_summary(features))


def _summary(features: Features, max_skipped: int = 10) -> str:
    n, d = features.X.shape
    lines = [f"{n} rows x {d} ({features.X.dtype}): {', '.join(map(str, features.files))}"]
    if features.classes is not None:
        lines.append(f"{len(features.classes)} classes from the names of folders")
    if features.skipped:
        lines.append(f"{len(features.skipped)} left out, as they could not be read:")
        lines += [f"  {reason}" for reason in list(features.skipped.values())[:max_skipped]]
        lines += [f"  and {len(features.skipped) - max_skipped} more"] if len(features.skipped) > max_skipped else []
    return "\n".join(lines)
