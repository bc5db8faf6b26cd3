"""Clusters that keep the information of a random walk: a prototype of a new default path, outside the library.

    PRODSC_DATA=../shared/data python benchmarks/walk_information.py digits aid7 [--seeds 2] [--rows 20000]

prints a Markdown table: ACC (mean and standard deviation over seeds), NMI, processor seconds of a fit. Labels only
score, and give k. A set is a name of `prodsc data list`, a name of CLIP_FILES, or a file.

rows --> principal directions --> neighbour graphs --> eigenvectors of the walk --> small clusters, merged, rows moved
--> vote of many such labellings --> network with k outputs --> labels

docs/notes/walk_information.md has the formulas, the measurements and the open problems. Run with OMP_NUM_THREADS=1.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from scipy.optimize import linear_sum_assignment
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from prodsc import load_dataset
from prodsc.core.metrics import accuracy, nmi
from prodsc.random import generator
from prodsc.sources.named import search_path

CLIP_FILES = {  # feature files that are not in the catalogue; searched for in the directories of PRODSC_DATA
    "aid7": "aid7_clip_vitl14.npz",
    "caltech100": "caltech100_clip_vitb32.npz",
    "dtd47": "dtd47_clip_vitb32.npz",
    "flowers102": "flowers102_clip_vitb32.npz",
    "pets37": "pets37_clip_vitb32.npz",
}


@dataclass(frozen=True)
class Options:
    """The constants of the method. Those marked "study" were chosen with the classes of the study sets in view."""

    n_neighbors: tuple[int, ...] = (15, 30)  # one graph each: 15 is UMAP's default, its double makes candidates differ
    n_directions: int = 128  # principal directions: neighbour purity is best or near it at 64 to 128 (study)
    max_spreads: tuple[float, ...] = (
        2.0,
        1.0,
    )  # limit of column spread in medians: 2 is safe, 1 helps Pets (study)
    spread_rows: int = 3000  # rows on which the limit is chosen: enough to rank two limits
    gammas: tuple[float, ...] = (400.0, 1600.0)  # weights of self-expression in the closed form (study)
    spread_gamma: float = 1600.0  # the one gamma used to choose the limit
    min_eigenvectors: int = 64  # at least so many, else 2k: merging needs finer structure than k clusters
    small_per_cluster: int = 6  # small clusters for each cluster, before merging (study: 3, 4, 6, 12)
    max_extra_small: int = 150  # more small clusters than k + 150 cost too much where k is about 100
    min_small_rows: int = 8  # average rows of a small cluster, so that its walk can be estimated
    starts: int = 3  # of k-means, for each graph and gamma
    spectral_starts: int = 4  # of k-means on the k leading eigenvectors, for each graph
    move_rounds: int = 10
    move_steps: int = 3  # length of the walk by which rows move: less noise than one step
    uneven_entropy: float = 0.85  # sizes are uneven if their entropy is below this share of log k (study: Reuters)
    same_nmi: float = 0.8  # two labellings with a larger NMI show the same clusters (study: Reuters)
    clear_information: float = 0.87  # above this share of the entropy the usual labels stay (study: HAPT, Reuters)
    hidden_size: int = 256
    batch_size: int = 512
    min_batch_per_cluster: int = 8  # rows of each cluster in a batch, for the information of soft labels
    supervised_steps: int = 100  # 300 are not better on both sets tried (study: MNIST, CIFAR-10 features)
    information_steps: int = 100  # further 200 add nothing (study)
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2


OPTIONS = Options()


# ---- neighbour graph -------------------------------------------------------------------------------------------------


def unit_rows(A: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1."""
    return A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), 1e-12)


def principal_directions(X: np.ndarray, max_spread: float) -> np.ndarray:
    """Coordinates along the principal directions of unit rows, after limiting the spread of wide columns."""
    X = unit_rows(X)
    spread = X.std(0)
    ratio = spread / np.median(spread[spread > 0])
    X = X * (1 / np.maximum(ratio / max_spread, 1))
    X = X - X.mean(0)
    if X.shape[1] <= OPTIONS.n_directions:
        return X.astype(np.float32)
    if X.shape[1] > 1500:  # the covariance of so many columns costs more than three subspace iterations
        X = X @ leading_subspace(X, OPTIONS.n_directions + 16)
    vectors = np.linalg.eigh((X.T @ X).astype(np.float64))[1][:, -OPTIONS.n_directions :]
    return X @ vectors.astype(np.float32)


def leading_subspace(X: np.ndarray, size: int) -> np.ndarray:
    """An orthonormal basis near the leading right singular vectors, by subspace iteration from a random start."""
    Q = generator(0).standard_normal((X.shape[1], size)).astype(np.float32)
    for _ in range(3):
        Q = np.linalg.qr(X.T @ (X @ Q))[0]
    return Q


def neighbours_with_distances(P: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of the nearest rows by cosine, and their Euclidean distances as unit rows."""
    unit = torch.from_numpy(unit_rows(P))
    n_neighbors = min(n_neighbors, len(unit) - 1)
    nearest, cosines = [], []
    for rows in torch.arange(len(unit)).split(1024):
        # The library's nearest_neighbours gives no distances, and a second product would double the cost.
        block = unit[rows] @ unit.T
        block[torch.arange(len(rows)), rows] = -torch.inf
        top = block.topk(n_neighbors, dim=1)
        nearest.append(top.indices)
        cosines.append(top.values)
    return torch.cat(nearest).numpy(), (2 - 2 * torch.cat(cosines)).clamp_min(0).sqrt().numpy()


def fuzzy_weights(neighbours: np.ndarray, distances: np.ndarray) -> sp.csr_matrix:
    """UMAP's fuzzy graph: weights of a row add up to log2(m + 1), and are united over both directions."""
    n, m = neighbours.shape
    beyond = distances - distances[:, :1]
    scale = np.maximum(bandwidths(beyond, np.log2(m + 1)), 1e-3 * distances.mean())
    weights = np.exp(-beyond / scale[:, None])
    W = sp.csr_matrix((weights.ravel(), (np.repeat(np.arange(n), m), neighbours.ravel())), (n, n))
    return (W + W.T - W.multiply(W.T)).tocsr()


def bandwidths(beyond: np.ndarray, total: float) -> np.ndarray:
    """The s of each row for which exp(-beyond / s) adds up to `total`, by bisection of all rows at once."""
    n = len(beyond)
    low, high, scale = np.zeros(n), np.full(n, np.inf), np.ones(n)
    for _ in range(30):
        too_wide = np.exp(-beyond / scale[:, None]).sum(1) > total
        high, low = np.where(too_wide, scale, high), np.where(too_wide, low, scale)
        scale = np.where(np.isinf(high), 2 * scale, (low + high) / 2)
    return scale


@dataclass(frozen=True)
class Graph:
    """A symmetric weighted graph and its random walk."""

    W: sp.csr_matrix
    degrees: np.ndarray
    step: sp.csr_matrix  # D^-1 W, one step of the walk


def make_graph(neighbours: np.ndarray, distances: np.ndarray) -> Graph:
    """The fuzzy graph of the neighbours."""
    W = fuzzy_weights(neighbours, distances)
    degrees = np.asarray(W.sum(1)).ravel()
    return Graph(W, degrees, (sp.diags(1 / degrees) @ W).tocsr())


def walk_eigenvectors(graph: Graph, n_vectors: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues of D^-1/2 W D^-1/2, ascending, and their eigenvectors."""
    scale = sp.diags(1 / np.sqrt(graph.degrees))
    n = len(graph.degrees)
    start = generator(seed).random(n)
    return eigsh(scale @ graph.W @ scale, min(n_vectors, n - 1), which="LA", tol=1e-3, v0=start)


# ---- information of the walk -----------------------------------------------------------------------------------------


def joint_distribution(graph: Graph, labels: np.ndarray, k: int, steps: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Probability of each pair of clusters at the two ends of a walk, and of each end cluster for each first row."""
    n = len(labels)
    ends = np.zeros((n, k), np.float32)
    ends[np.arange(n), labels] = 1
    for _ in range(steps):
        ends = graph.step @ ends
    joint = sp.csr_matrix((graph.degrees, (labels, np.arange(n))), (k, n)) @ ends
    joint = (joint + joint.T) / 2
    return joint / joint.sum(), ends


def x_log_x(a: np.ndarray) -> np.ndarray:
    """a log a, 0 at 0."""
    return a * np.log(np.maximum(a, 1e-300))


def information(joint: np.ndarray) -> float:
    """Mutual information of the clusters at the two ends of the walk."""
    return float(x_log_x(joint).sum() - 2 * x_log_x(joint.sum(1)).sum())


def entropy(joint: np.ndarray) -> float:
    """Entropy of the cluster at one end of the walk."""
    return float(-x_log_x(joint.sum(1)).sum())


# ---- merging and moving ----------------------------------------------------------------------------------------------


def merge_losses(joint: np.ndarray, r: int) -> np.ndarray:
    """The information that is lost if cluster r is merged with each other cluster."""
    size, diagonal = joint.sum(1), np.diag(joint)
    rows, own = x_log_x(joint).sum(1), x_log_x(diagonal)
    before = 2 * rows[r] - own[r] + 2 * rows - own - 2 * x_log_x(joint[r])
    together = x_log_x(joint[r][None] + joint)
    np.fill_diagonal(together, 0)
    together[:, r] = 0
    after = 2 * together.sum(1) + x_log_x(joint[r, r] + diagonal + 2 * joint[r])
    return before - after + 2 * (x_log_x(size[r] + size) - x_log_x(size[r]) - x_log_x(size))


def column_losses(column: np.ndarray) -> np.ndarray:
    """The part of the loss of each pair of clusters that comes from their walks to one other cluster, both ways."""
    terms = x_log_x(column)
    return 2 * (terms[:, None] + terms[None] - x_log_x(column[:, None] + column[None]))


def merge_clusters(joint: np.ndarray, k: int) -> np.ndarray:
    """The cluster, of k, of each small cluster: the pair with the smallest loss is merged until k are left."""
    joint = joint.copy()
    n_small = len(joint)
    merged_into = np.arange(n_small)
    gone = np.zeros(n_small, dtype=bool)
    losses = np.stack([merge_losses(joint, r) for r in range(n_small)])
    np.fill_diagonal(losses, np.inf)
    for _ in range(n_small - k):
        r, s = sorted(divmod(int(losses.argmin()), n_small))
        losses -= column_losses(joint[:, r]) + column_losses(joint[:, s])
        joint[r] += joint[s]
        joint[:, r] += joint[:, s]
        joint[s] = joint[:, s] = 0
        gone[s] = True
        merged_into[merged_into == s] = r
        losses += column_losses(joint[:, r])
        row = merge_losses(joint, r)
        row[gone] = row[r] = np.inf
        losses[r] = losses[:, r] = row
        losses[s] = losses[:, s] = np.inf
    return np.unique(merged_into, return_inverse=True)[1]


def move_rows(graph: Graph, labels: np.ndarray, k: int) -> np.ndarray:
    """Each row to the cluster with the largest log-likelihood of its walk, half of the movers at a time."""
    rng = generator(0)
    for _ in range(OPTIONS.move_rounds):
        joint, ends = joint_distribution(graph, labels, k, OPTIONS.move_steps)
        size = joint.sum(1) + 1e-12
        best = (ends @ np.log((joint + 1e-9) / np.outer(size, size))).argmax(1)
        moves = (best != labels) & (rng.random(len(labels)) < 0.5)
        moved = np.where(moves, best, labels)
        if len(np.unique(moved)) < k:
            return labels
        labels = moved
        if moves.mean() < 1e-3:
            break
    return labels


# ---- candidates and their vote ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidates:
    """Labellings of all rows."""

    merged: list[np.ndarray]
    spectral: list[np.ndarray]


def make_candidates(graphs: Sequence[Graph], k: int, seed: int) -> Candidates:
    """Merged labellings of every graph, gamma and start, and k-means of the leading eigenvectors of every graph."""
    found = Candidates([], [])
    for graph in graphs:
        values, vectors = walk_eigenvectors(graph, max(2 * k, OPTIONS.min_eigenvectors), seed)
        for gamma in OPTIONS.gammas:
            seeds = [seed * 100 + start for start in range(OPTIONS.starts)]
            found.merged.extend(merged_labels(graph, values, vectors, gamma, k, start) for start in seeds)
        leading = unit_rows(vectors[:, np.argsort(-values)[:k]])
        for start in range(OPTIONS.spectral_starts):
            found.spectral.append(KMeans(k, n_init=1, random_state=seed * 100 + start).fit_predict(leading))
    return found


def merged_labels(graph: Graph, values: np.ndarray, vectors: np.ndarray, gamma: float, k: int, seed: int) -> np.ndarray:
    """Small clusters of the closed-form Z, merged into k, then rows moved."""
    Z = unit_rows(vectors / np.sqrt(gamma * (1 - values) ** 2 + 1)).astype(np.float32)
    n_small = min(OPTIONS.small_per_cluster * k, k + OPTIONS.max_extra_small, len(Z) // OPTIONS.min_small_rows)
    n_small = max(k, n_small)
    small = KMeans(n_small, n_init=1, max_iter=20, random_state=seed).fit_predict(Z)
    joint = joint_distribution(graph, small, n_small)[0]
    return move_rows(graph, merge_clusters(joint, k)[small], k)


def vote(labellings: list[np.ndarray], k: int) -> np.ndarray:
    """The label that most labellings give, their clusters matched to those of the labelling most like the others."""
    similarity = np.array([[nmi(a, b) for b in labellings] for a in labellings])
    reference = labellings[int(similarity.sum(1).argmax())]
    rows = np.arange(len(reference))
    for _ in range(2):
        votes = np.zeros((len(rows), k))
        for labels in labellings:
            votes[rows, match_clusters(labels, reference, k)[labels]] += 1
        reference = votes.argmax(1)
    return reference


def match_clusters(labels: np.ndarray, reference: np.ndarray, k: int) -> np.ndarray:
    """For each cluster of `labels` the one of `reference`, by the largest number of common rows."""
    counts = np.zeros((k, k))
    np.add.at(counts, (labels, reference), 1)
    return linear_sum_assignment(counts, maximize=True)[1]


def choose_labels(graphs: Sequence[Graph], found: Candidates, k: int) -> tuple[np.ndarray, bool]:
    """The vote of the merged candidates with most information, or an uneven spectral one; and whether it is uneven."""
    labellings = found.merged + found.spectral
    joints = [[joint_distribution(graph, labels, k)[0] for graph in graphs] for labels in labellings]
    kept = np.array([np.mean([information(joint) for joint in each]) for each in joints])
    sizes = np.array([entropy(each[0]) for each in joints])
    n_merged = len(found.merged)
    best_half = np.argsort(-kept[:n_merged], kind="stable")[: (n_merged + 1) // 2]
    usual, other = best_half[0], int((kept / sizes).argmax())
    uneven = bool(
        sizes[other] < OPTIONS.uneven_entropy * np.log(k)
        and nmi(labellings[usual], labellings[other]) < OPTIONS.same_nmi
        and kept[usual] / sizes[usual] < OPTIONS.clear_information
    )
    if uneven:
        return labellings[other], True
    return move_rows(graphs[0], vote([labellings[i] for i in best_half], k), k), False


def choose_max_spread(X: np.ndarray, k: int) -> float:
    """The limit of the columns' spread whose graph keeps the most information, on some of the rows."""
    some = X[generator(7).permutation(len(X))[: OPTIONS.spread_rows]]
    return max(OPTIONS.max_spreads, key=lambda max_spread: most_information(some, k, max_spread))


def most_information(X: np.ndarray, k: int, max_spread: float) -> float:
    """The most information that two merged labellings keep under this limit."""
    near, distances = neighbours_with_distances(principal_directions(X, max_spread), OPTIONS.n_neighbors[0])
    graph = make_graph(near, distances)
    kept = []
    for seed in (0, 1):
        values, vectors = walk_eigenvectors(graph, max(2 * k, OPTIONS.min_eigenvectors), seed)
        labels = merged_labels(graph, values, vectors, OPTIONS.spread_gamma, k, seed * 100)
        kept.append(information(joint_distribution(graph, labels, k)[0]))
    return max(kept)


# ---- network ---------------------------------------------------------------------------------------------------------


def make_network(n_inputs: int, k: int, seed: int) -> nn.Sequential:
    """A small perceptron with k outputs; torch's own start from this seed, the global state left as it was."""
    width = OPTIONS.hidden_size
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Linear(n_inputs, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, k),
        )  # fmt: skip


class WalkSampler:
    """Draws the ends of random walks on a graph."""

    def __init__(self, graph: Graph) -> None:
        self.W = graph.W
        self.before = np.concatenate([[0], np.cumsum(graph.W.data)])  # weight of all edges before each edge

    def step(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A neighbour of each row, with probability proportional to the weight of the edge."""
        first, last = self.W.indptr[rows], self.W.indptr[rows + 1]
        drawn = self.before[first] + rng.random(len(rows)) * (self.before[last] - self.before[first])
        edges = np.searchsorted(self.before, drawn, "right") - 1
        return self.W.indices[np.clip(edges, first, last - 1)]

    def ends(self, rows: np.ndarray, rng: np.random.Generator, max_steps: int = 3) -> np.ndarray:
        """The ends of walks of 1 to `max_steps` steps, each length as likely as the others."""
        length = rng.integers(1, max_steps + 1, len(rows))
        for steps in range(max_steps):
            rows = np.where(steps < length, self.step(rows, rng), rows)
        return rows


def information_loss(logits: Tensor) -> Tensor:
    """Minus the information between the soft labels of the first half of the rows and those of the second half."""
    starts, ends = logits.softmax(1).chunk(2)
    joint = starts.T @ ends / len(starts)
    joint = (joint + joint.T) / 2
    log_size = joint.sum(1).log()
    return -(joint * (joint.clamp_min(1e-8).log() - log_size[:, None] - log_size)).sum()


def train_network(P: np.ndarray, graph: Graph, labels: np.ndarray, k: int, seed: int, uneven: bool) -> np.ndarray:
    """Train on the labels, then, unless sizes are uneven, on the information; the labels that the network gives."""
    X = torch.from_numpy(unit_rows(P) * np.sqrt(P.shape[1])).float()
    targets = torch.from_numpy(labels).long()
    network, rng, sampler = make_network(X.shape[1], k, seed), generator(seed), WalkSampler(graph)
    optimiser = torch.optim.AdamW(network.parameters(), OPTIONS.learning_rate, weight_decay=OPTIONS.weight_decay)
    n = len(X)
    batch = min(max(OPTIONS.batch_size, OPTIONS.min_batch_per_cluster * k), max(1, n // 2))
    order, position = np.empty(0, dtype=int), n
    for step in range(OPTIONS.supervised_steps + (0 if uneven else OPTIONS.information_steps)):
        if position + batch > n:
            order, position = rng.permutation(n), 0
        rows = order[position : position + batch]
        position += batch
        logits = network(X[np.concatenate([rows, sampler.ends(rows, rng)])])
        supervised = step < OPTIONS.supervised_steps
        loss = cross_entropy(logits, targets[rows].repeat(2)) if supervised else information_loss(logits)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return predict(network, X)


@torch.no_grad()
def predict(network: nn.Module, X: Tensor) -> np.ndarray:
    """The output with the largest value for each row."""
    network.eval()
    return torch.cat([network(rows) for rows in X.split(4096)]).argmax(1).numpy()


# ---- fit and table ---------------------------------------------------------------------------------------------------


def fit_labels(X: np.ndarray, k: int, seed: int = 0) -> np.ndarray:
    """Labels of the rows in k clusters."""
    X = np.asarray(X, np.float32).reshape(len(X), -1)
    P = principal_directions(X, choose_max_spread(X, k))
    near, distances = neighbours_with_distances(P, max(OPTIONS.n_neighbors))
    graphs = [make_graph(near[:, :m], distances[:, :m]) for m in OPTIONS.n_neighbors]
    labels, uneven = choose_labels(graphs, make_candidates(graphs, k, seed), k)
    return train_network(P, graphs[0], labels, k, seed, uneven)


def load(name: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes of a set, at most `n_rows` of them."""
    data = load_dataset(clip_file(name) if name in CLIP_FILES else name)
    if data.y is None:
        raise SystemExit(f"{name} has no classes to score with.")
    chosen = np.arange(len(data.X))
    if len(chosen) > n_rows:
        chosen = generator(0).permutation(len(chosen))[:n_rows]
    return np.asarray(data.X)[chosen], data.y[chosen]


def clip_file(name: str) -> Path:
    """The file of a set of CLIP features in the first data directory that has it."""
    paths = [folder.path / CLIP_FILES[name] for folder in search_path()]
    found = next((path for path in paths if path.is_file()), None)
    if found is None:
        folders = ", ".join(str(path.parent) for path in paths)
        raise SystemExit(f"{CLIP_FILES[name]} is in none of {folders}. Set PRODSC_DATA to the folder that has it.")
    return found


def table_row(name: str, n_rows: int, n_seeds: int) -> str:
    """Scores of one set as a row of the table."""
    X, y = load(name, n_rows)
    scores = []
    for seed in range(n_seeds):
        began = time.process_time()
        labels = fit_labels(X, len(np.unique(y)), seed)
        scores.append((accuracy(y, labels), nmi(y, labels), time.process_time() - began))
    (acc, mutual, seconds), std = np.mean(scores, axis=0), np.std(scores, axis=0)[0]
    return f"| {name} | {len(y):,} | {acc:.3f} ± {std:.3f} | {mutual:.3f} | {seconds:.1f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="ACC, NMI and seconds of the walk-information prototype.")
    parser.add_argument("sets", nargs="+", help=f"prodsc data list, {', '.join(CLIP_FILES)}, or files")
    parser.add_argument("--seeds", type=int, default=2, help="seeds 0, 1, ... (default: 2)")
    parser.add_argument("--rows", type=int, default=20_000, help="at most so many rows (default: 20000)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| set | rows | ACC | NMI | CPU s |\n|---|---|---|---|---|", flush=True)
    for name in options.sets:
        print(table_row(name, options.rows, options.seeds), flush=True)


if __name__ == "__main__":
    main()
