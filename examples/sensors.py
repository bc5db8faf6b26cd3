"""Windows of a sensor: what the machine was doing, by the spectrum of each second.

python examples/sensors.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from prodsc import PRODSC, open_source


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)

    # Ten minutes at 64 Hz: a machine idles, runs slowly or runs fast, for some seconds each.
    rng = np.random.default_rng(0)
    state = np.repeat(rng.integers(3, size=100), 6)
    time = np.arange(600 * 64) / 64
    frequency, strength = np.array([0.0, 5.0, 13.0])[state], np.array([0.0, 1.0, 1.6])[state]
    signal = np.repeat(strength, 64) * np.sin(2 * np.pi * np.repeat(frequency, 64) * time) + 0.3 * rng.normal(
        size=time.size
    )

    windows = signal.reshape(600, 64)
    spectrum = np.log1p(np.abs(np.fft.rfft(windows, axis=1))[:, 1:21])
    table = pd.DataFrame(spectrum, columns=[f"{hertz} Hz" for hertz in range(1, 21)]).assign(loudness=windows.std(1))
    table["second"] = [f"{s // 60:02d}:{s % 60:02d}" for s in range(600)]
    source = open_source(table, id="second")
    model = PRODSC(3, scaling="centred", epochs=60).fit(source)
    report = model.report(
        source, columns={"state of the machine": np.array(["idle", "slow", "fast"])[state]}, title="Sensor"
    )
    print(pd.crosstab(np.array(["idle", "slow", "fast"])[state], np.array(report.names)[model.labels_]))
    print(report.save(folder / "report.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/sensors"))
