"""prodsc launch --nproc-per-node 2 fit ...: torchrun, without its pages of traceback when a process ends."""

import logging

import click

from prodsc.errors import RankError


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def launch(words: tuple[str, ...]) -> None:
    """Run a prodsc command on several processes.

    Give torchrun's options first, then the command and its own options. This is the same as `torchrun OPTIONS -m prodsc
    COMMAND ...`, which also works but ends in a traceback when a process fails.
    """
    from torch.distributed import run as torchrun  # slow to import
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    args = torchrun.parse_args(["--module", *words])
    args.training_script, args.training_script_args = "prodsc", [args.training_script, *args.training_script_args]
    logging.disable(logging.ERROR)  # of torchrun: the processes have printed their errors
    try:
        torchrun.run(args)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode < 0:  # it was killed, so it printed nothing
            raise RankError(f"rank {rank} was ended by {failure.signal_name()}.") from None
        raise click.exceptions.Exit(failure.exitcode) from None
