"""Writes labels.npz: OMP_NUM_THREADS=1 python tests/golden/make.py. Run it on the code whose labels are to be kept."""

import sys
import time
import warnings

import numpy as np
from cases import CASES, LABELS

from prodsc import make


def main() -> None:
    kept = dict(np.load(LABELS, allow_pickle=False)) if LABELS.exists() else {}
    for case in CASES:
        if len(sys.argv) > 1 and case.name not in sys.argv[1:]:
            continue
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make(case.method, random_state=0, device="cpu", **case.parameters).fit(case.rows(), **case.fit)
        kept[case.name] = model.labels_.astype(np.int16)
        print(f"{case.name}: {np.bincount(model.labels_)[:8]} {time.process_time() - began:.1f} s", flush=True)
        np.savez_compressed(LABELS, **kept)


if __name__ == "__main__":
    main()
