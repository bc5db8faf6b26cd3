"""The measures of alignment and structure in the paper, once per epoch: `fit(X, callbacks=[Meters(...)])`."""

from dataclasses import dataclass, field

import numpy as np
import torch

from prodsc.core import theory
from prodsc.training.loop import Callback, Training


@dataclass
class Meters(Callback):
    """Measures the last batch of every `every`-th joint epoch.

    Parameters
    ----------
    classes : ndarray of shape (n,), optional
        Class of each row of X: the true ones, as in the paper, or the labels of an earlier fit. Without them the
        measures of blocks are left out.
    every : int
        Epochs between measurements.
    spectra : bool
        Also record whole curves: eigenvalues and correlations.
    numbers, curves : dict of list
        The results, by name.
    """

    classes: np.ndarray | None = None
    every: int = 1
    spectra: bool = False
    numbers: dict[str, list[float]] = field(default_factory=dict)
    curves: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def on_step(self, training: Training) -> None:
        phase, step = training.current, training.step
        epoch, within = divmod(step, phase.batches.per_epoch)
        if "self_expression" not in phase.terms or within or epoch % self.every:
            return
        with torch.no_grad():
            Z, C = training.batch.Z.detach(), training.batch.C.detach()
            G, M = theory.gram_and_residual(Z, C)
            values = {"epoch": float(epoch), "commutator": float(theory.commutator(G, M))}
            values["relative_commutator"] = values["commutator"] / float(G.norm() * M.norm())
            values["effective_rank"] = float(theory.effective_rank(Z))
            values["lambda_max"] = float(theory.lambda_max(C))
            if self.classes is not None:
                labels = torch.from_numpy(np.asarray(self.classes)[phase.batches[step - 1]]).to(Z.device)
                values["csc"] = float(theory.csc(M, G, labels))
                values["g_inside"], values["g_outside"] = map(float, theory.block_means(G, labels))
                values["c_inside"], values["c_outside"] = map(float, theory.block_means(C, labels))
            if self.spectra:
                of_G, of_M = theory.spectra(G, M)
                curves = {"eigenvalues_G": of_G, "eigenvalues_M": of_M}
                curves["correlations"] = theory.eigenspace_correlation(G, M)
                for name, curve in curves.items():
                    self.curves.setdefault(name, []).append(curve.cpu().numpy())
        for name, value in values.items():
            self.numbers.setdefault(name, []).append(value)
