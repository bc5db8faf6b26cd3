"""Recipes carry the published numbers, and speak when they are wrong."""

import pytest

from prodsc.errors import RecipeError
from prodsc.runs.recipes import load_recipe, names, parse

# gamma, beta, eta (None: not published), half-steps, d_pre, d, epochs, n, warm-up: the paper's tables of configurations
FEATURES = {
    "cifar10": (300, 600, 0.175, 1, 4096, 128, 10, 1024, 200),
    "cifar20": (600, 300, 0.13, 1, 4096, 256, 50, 1500, 0),
    "cifar100": (150, 500, 0.1, 1, 4096, 128, 100, 1500, 200),
    "imagenet-dogs": (300, 400, 0.1, 5, 4096, 128, 200, 1024, 0),
    "tiny-imagenet": (200, 400, 0.1, 1, 4096, 256, 100, 1500, 0),
    "imagenet-1k": (800, 400, 0.09, 1, 4096, 1024, 100, 2048, 2000),
    "mnist": (700, 400, None, 1, 4096, 128, 100, 1024, 200),
    "fashion-mnist": (50, 100, None, 1, 1024, 128, 200, 1024, 400),
    "flowers": (400, 200, None, 1, 1024, 256, 200, 1024, 200),
    "reuters-10k": (50, 200, None, 1, 1024, 128, 100, 1024, 50),
    "uci-har": (100, 300, None, 1, 1024, 128, 100, 2048, 20),
}
# gamma, beta, eta, eps, channels, kernels, d, epochs
CONV = {
    "eyaleb": (200, 50, 0.03, 0.1, [10, 20, 30], [5, 3, 3], 256, 10000),
    "orl": (75, 10, 0.2, 0.1, [3, 3, 5], [3, 3, 3], 64, 5000),
    "coil100": (200, 100, 0.02, 0.05, [50], [5], 100, 10000),
}


# Ours, for data at hand or for two cores: the published recipe each is made from.
OURS = {
    "cifar10-efflite0": "cifar10",
    "flowers-efflite0": "flowers",
    "hapt-561": "uci-har",
    "reuters-21578": "reuters-10k",
    "orl-whitened": "orl",
    "eyaleb-whitened": "eyaleb",
    "coil100-whitened": "coil100",
}


def test_one_recipe_per_published_row():
    assert set(names()) == set(FEATURES) | set(CONV) | set(OURS)


@pytest.mark.parametrize(("name", "published"), OURS.items())
def test_our_recipes_name_every_departure(name, published):
    ours, theirs = load_recipe(name), load_recipe(published)
    changed = {key for key, value in ours.parameters.items() if theirs.parameters.get(key) != value}
    assert changed - {"n_clusters"} <= set(ours.ours)
    assert not changed & {"gamma", "beta", "eps", "n_components"}


@pytest.mark.parametrize("name", FEATURES)
def test_feature_recipes(name):
    gamma, beta, eta, half_steps, d_pre, d, epochs, n, warmup = FEATURES[name]
    p = load_recipe(name).parameters
    assert (p["gamma"], p["beta"], p["hidden_size"], p["n_components"]) == (gamma, beta, d_pre, d)
    assert (p["epochs"], p["batch_size"], p["warmup_steps"], p["eps"]) == (epochs, n, warmup, 0.1)
    assert (p["normaliser"], p.get("half_steps", 1)) == ("softmax" if half_steps == 1 else "sinkhorn", half_steps)
    assert (p["coefficient_form"], p["label_affinity"]) == ("symmetric", "gram")
    assert (p["eta"] == eta) if eta else ("eta" in load_recipe(name).ours)
    assert (p["weight_decay"], p["weight_decay_h"], p["momentum"]) == (1e-4, 5e-3, 0.9)
    expected = (5e-5, 1e-4) if name == "cifar20" else (1e-4, None)
    assert (p["learning_rate"], p.get("learning_rate_h")) == expected


@pytest.mark.parametrize("name", CONV)
def test_conv_recipes(name):
    gamma, beta, eta, eps, channels, kernels, d, epochs = CONV[name]
    p = load_recipe(name).parameters
    assert (p["gamma"], p["beta"], p["eta"], p["eps"]) == (gamma, beta, eta, eps)
    assert (p["channels"], p["kernel_sizes"], p["n_components"], p["epochs"]) == (channels, kernels, d, epochs)
    assert (p["coefficient_form"], p["label_affinity"], p["encoder"]) == ("directed", "coefficients", "conv")
    assert (p["warmup_steps"], p["learning_rate"]) == (100, 1e-4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[parameters]\ngama = 1", r"mine.toml: unknown key 'gama'; did you mean 'gamma'\?"),
        ("[about]\ntitel = 'x'", r"unknown key 'titel'; did you mean 'title'\?"),
        ("gamma = 1", r"unknown section or key 'gamma' at the top.*Put parameters under \[parameters\]"),
        ("[parameters]\ngamma = -1", r"mine.toml: gamma must be a number above 0 or 'auto', got -1"),
        ("[parameters", "not valid TOML"),
    ],
)
def test_mistakes_speak(text, said):
    with pytest.raises(RecipeError, match=said):
        parse("mine", text, "mine.toml")


def test_unknown_names(tmp_path):
    with pytest.raises(RecipeError, match=r"did you mean 'orl'\?"):
        load_recipe("orll")
    with pytest.raises(RecipeError, match="cannot read the recipe"):
        load_recipe(str(tmp_path / "absent.toml"))
