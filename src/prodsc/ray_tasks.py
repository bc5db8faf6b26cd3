"""Work on many machines with Ray: tasks by number, each done by a worker that is built once in every process."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from prodsc import errors
from prodsc.errors import ProdscError, RankError, reason_of, require

Work = Callable[[int], bytes]


def map_with_ray(
    make_work: Callable[..., Work],
    arguments: tuple[Any, ...],
    tasks: Sequence[int],
    workers: int,
    ordered: bool = False,
) -> Iterator[tuple[int, bytes]]:
    """Do tasks in other processes with Ray Data, and yield the result of each once.

    A process that dies is started again and its task is done again, as often as needed. A cluster that is already
    running is used (`ray.init`, or the variable RAY_ADDRESS); otherwise Ray is started on this machine.

    Parameters
    ----------
    make_work : callable
        Called once in every process; gives the function from a task to its result. Must be importable there.
    arguments : tuple
        Of `make_work`; must be small, such as paths.
    tasks : sequence of int
        Numbers of the tasks.
    workers : int
        Number of processes, of one core each.
    ordered : bool
        Whether results come in the order of the tasks, and not as they are done.

    Yields
    ------
    task : int
    result : bytes
    """
    if not tasks:
        return
    ray = require("ray", extra="ray", caller="engine='ray'")
    data = require("ray.data", extra="ray", caller="engine='ray'")
    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False, configure_logging=False, include_dashboard=False)
    context = data.DataContext.get_current()
    context.execution_options.preserve_order = ordered
    context.enable_progress_bars = False
    rows = data.from_items([{"task": int(task)} for task in tasks], override_num_blocks=len(tasks))
    try:
        done = rows.map_batches(
            _Worker,
            fn_constructor_args=(make_work, arguments),
            batch_size=1,
            concurrency=min(workers, len(tasks)),
            num_cpus=1,
        )
        for row in done.iter_rows():
            if row["error"]:
                raise getattr(errors, row["error"])(row["result"].decode())
            yield int(row["task"]), row["result"]
    except ray.exceptions.RayError as error:
        sentence = f"a process of Ray failed ({reason_of(error)}). The same command continues where it stopped."
        raise RankError(sentence) from error
    finally:
        if started:
            ray.shutdown()


class _Worker:
    """What Ray builds in every process."""

    def __init__(self, make_work: Callable[..., Work], arguments: tuple[Any, ...]):
        self.work = make_work(*arguments)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        (task,) = batch["task"]
        try:
            result, error = self.work(int(task)), ""
        except ProdscError as wrong:  # the user's sentence, not a traceback of Ray
            result, error = str(wrong).encode(), type(wrong).__name__
        return {"task": [task], "result": [result], "error": [error]}
