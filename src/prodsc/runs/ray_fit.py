"""A fit on many machines with Ray Train: its workers are the ranks of the run, as those of torchrun are."""

import tempfile
from typing import Any

from prodsc.errors import RankError, reason_of, require
from prodsc.ranks.process import TIMEOUT_SECONDS
from prodsc.runs.run import REQUEST, FitRequest, is_finished, run


def fit_with_ray(request: FitRequest, workers: int, *, resume: bool, report: bool, retries: int = 3) -> None:
    """Run a request with TorchTrainer. The results are in the folder of the request, as those of `run` are.

    If a worker dies, Ray starts all of them again, and they continue from the last checkpoint.

    Parameters
    ----------
    request : FitRequest
        What to fit. Its files and its folder must be on a file system that all machines see.
    workers : int
        Number of processes, of one core each (or one GPU each, where Ray has any).
    resume : bool
        Whether to continue the interrupted run that the request was read from.
    report : bool
        Whether to make the page.
    retries : int
        How often lost workers are started again.

    Raises
    ------
    RankError
        If the workers failed more often.
    """
    ray = require("ray", extra="ray", caller="engine='ray'")
    train = require("ray.train", extra="ray", caller="engine='ray'")
    torch_train = require("ray.train.torch", extra="ray", caller="engine='ray'")
    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False, configure_logging=False, include_dashboard=False)
    with tempfile.TemporaryDirectory() as storage:
        trainer = torch_train.TorchTrainer(
            _fit_here,
            train_loop_config={"request": request, "resume": resume, "report": report},
            scaling_config=train.ScalingConfig(
                num_workers=workers, use_gpu="GPU" in ray.cluster_resources(), resources_per_worker={"CPU": 1}
            ),
            torch_config=torch_train.TorchConfig(timeout_s=int(TIMEOUT_SECONDS)),
            run_config=train.RunConfig(storage_path=storage, failure_config=train.FailureConfig(max_failures=retries)),
        )
        try:
            trainer.fit()
        except Exception as error:  # Ray has a kind of error for each place
            if not is_finished(request.out):
                sentence = f"the workers of Ray failed ({reason_of(error)}). Continue with --resume {request.out}."
                raise RankError(sentence) from error
        finally:
            if started:
                ray.shutdown()


def _fit_here(config: dict[str, Any]) -> None:
    """The work of one rank; after a failure the run in the folder is continued."""
    request: FitRequest = config["request"]
    begun = config["resume"] or ((request.out / REQUEST).exists() and not is_finished(request.out))
    if begun:
        request = FitRequest.read(request.out)
    run(request, resume=begun, report=config["report"])
