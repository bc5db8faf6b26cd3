"""The scikit-learn contract."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from conftest import RIVAL_LIBRARIES
from prodsc import PRODSC, SEDSC
from prodsc.baselines import CPP, EDESC, MLC, SCAN, TEMI, TURTLE, DSCNet, SENet
from prodsc.baselines.closed_form import LRR, LSR
from prodsc.baselines.evoc import EVoC
from prodsc.baselines.k_means import KMeansClusterer, SphericalKMeans
from prodsc.baselines.leiden import Leiden
from prodsc.baselines.sparse import SSC, SSCOMP, EnSC
from prodsc.baselines.spectral import SpectralClusterer
from prodsc.baselines.umap_methods import UMAPGMM, UMAPHDBSCAN, UMAPKMeans
from prodsc.registry import METHODS

SMALL = {"hidden_size": 16, "n_components": 8, "epochs": 3, "warmup_steps": 2, "n_init": 2, "device": "cpu"}
QUICK = {"n_neighbors": 10, "learning_rate": 1e-2, "teacher_momentum": 0.9, "device": "cpu"}

QUICK_GRAPH = {"n_neighbors": 5, "learning_rate": 1e-2, "scaling": "standard", "device": "cpu"}
QUICK_BASES = {"subspace_dim": 2, "pretrain_learning_rate": 1e-2, "n_init": 2, "device": "cpu"}

CLASSICAL = [
    KMeansClusterer(3, n_init=2, device="cpu"),
    SphericalKMeans(3, n_init=2, device="cpu"),
    SpectralClusterer(3, n_init=2, device="cpu"),
    SSCOMP(3, n_init=2, device="cpu"),
    EnSC(3, n_init=2, device="cpu"),
    LSR(3, n_init=2, device="cpu"),
    SSC(3, n_init=2, device="cpu"),
    LRR(3, n_init=2, device="cpu"),
]
NOT_SUBSPACES = {"check_clustering": "three blobs in the plane are not three subspaces, the only thing SSC-OMP can see"}
DEEP_BASELINES = [
    CPP(3, **SMALL),
    MLC(3, head_hidden_size=8, epochs=3, warmup_steps=2, n_init=2, device="cpu"),
    TEMI(3, n_heads=2, hidden_size=8, n_components=4, warmup_epochs=0, epochs=10, **QUICK),
    SCAN(3, n_heads=2, n_neighbors=10, epochs=8, self_label_epochs=1, learning_rate=1e-1, device="cpu"),
    TURTLE(3, inner_steps=4, steps=10, learning_rate=1e-1, inner_learning_rate=1e-1, device="cpu"),
    SENet(3, hidden_sizes=(16,), n_components=16, steps=12, gradient_clip=1.0, n_init=2, **QUICK_GRAPH),
    DSCNet(3, hidden_size=8, n_components=4, pretrain_epochs=20, epochs=20, learning_rate=1e-2, **QUICK_BASES),
    EDESC(3, hidden_sizes=(16,), pretrain_epochs=10, steps=3, learning_rate=1e-2, **QUICK_BASES),
]


SPARSE_CLASSES = dict.fromkeys(
    ("check_estimator_sparse_array", "check_estimator_sparse_matrix"),
    "whatever takes sparse rows and has predict_proba is taken for a classifier of the classes in y",
)


@pytest.mark.filterwarnings("ignore:.*rows of zeros only:UserWarning", "ignore:.*row of zeros only:UserWarning")
@pytest.mark.filterwarnings("ignore:only 1 of n_clusters=2 clusters have rows:UserWarning")
@pytest.mark.filterwarnings(
    "ignore:the graph of the rows has:UserWarning", "ignore:.*solver did not conver:UserWarning"
)
@parametrize_with_checks(
    [PRODSC.from_flat(n_clusters=3, **SMALL), SEDSC.from_flat(n_clusters=3, **SMALL), *CLASSICAL, *DEEP_BASELINES],
    expected_failed_checks=lambda estimator: SPARSE_CLASSES | (NOT_SUBSPACES if isinstance(estimator, SSCOMP) else {}),
)
def test_estimator_contract(estimator, check):
    check(estimator)


SMALL_UMAP = {"n_components": 2, "n_neighbors": 5, "device": "cpu"}
LIBRARY_OF = {METHODS[name]: library for name, library in RIVAL_LIBRARIES.items()}
RIVALS = [
    UMAPKMeans(3, n_init=2, **SMALL_UMAP),
    UMAPGMM(3, **SMALL_UMAP),
    UMAPHDBSCAN(3, min_samples=2, **SMALL_UMAP),
    EVoC(3, scaling="centred", n_neighbors=5, device="cpu"),
    Leiden(3, scaling="standard", n_neighbors=5, device="cpu"),
]


@pytest.mark.filterwarnings("ignore:.*rows? of zeros only:UserWarning")
@pytest.mark.filterwarnings("ignore:every row is called noise:UserWarning")
@pytest.mark.filterwarnings("ignore:only 1 of n_clusters=2 clusters have rows:UserWarning")
@parametrize_with_checks(RIVALS)
def test_rival_contract(estimator, check):
    pytest.importorskip(LIBRARY_OF[type(estimator)])
    check(estimator)
