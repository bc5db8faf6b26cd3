"""Prints how many labels of each frozen fit are still the same: OMP_NUM_THREADS=1 python tests/golden/compare.py [all]

The tests ask for an ARI; on the machine where the labels were made, every label should be equal.
"""

import sys
import warnings

import numpy as np
from cases import CASES, LABELS

from prodsc import make


def main() -> None:
    with np.load(LABELS, allow_pickle=False) as file:
        kept = dict(file)
    for case in CASES:
        if case.slow and "all" not in sys.argv[1:]:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make(case.method, random_state=0, device="cpu", **case.parameters).fit(case.rows(), **case.fit)
        print(f"{case.name}: {(model.labels_ == kept[case.name]).sum()} of {len(kept[case.name])}", flush=True)


if __name__ == "__main__":
    main()
