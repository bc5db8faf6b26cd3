"""
Short texts
===========

Texts become rows, rows become clusters, and each cluster is described by its words. With a
sentence encoder the first step is ``prodsc extract``; here it is tf-idf and its principal
directions, which need no download.
"""

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

import prodsc
from prodsc import metrics

TOPICS = {
    "sea": "boat harbour wave sailor tide anchor gull storm pier island",
    "bread": "flour oven yeast dough crust baker loaf rye butter crumb",
    "music": "violin melody concert rhythm choir piano opera singer chord drum",
    "garden": "rose hedge soil seed bloom rake lawn bee orchard compost",
    "rail": "train station platform ticket track conductor signal engine tunnel delay",
}
rng = np.random.default_rng(0)
topics = rng.integers(len(TOPICS), size=500)
everyday = ["the", "a", "with", "and", "of", "one", "old", "new", "small", "near", "day", "morning"]
texts = [" ".join([*rng.choice(list(TOPICS.values())[t].split(), 5), *rng.choice(everyday, 5)]) for t in topics]
print(texts[0])

# %%
# Ten words per text, half of them common to all topics.

tfidf = TfidfVectorizer()
words = tfidf.fit_transform(texts)
X = TruncatedSVD(20, random_state=0).fit_transform(words)
model = prodsc.make("walk", n_clusters=5, random_state=0).fit(X)
print(f"ACC {metrics.accuracy(topics, model.labels_):.3f}")

# %%
# The words that are typical of each cluster: the largest mean tf-idf against all texts.

import matplotlib.pyplot as plt

names = tfidf.get_feature_names_out()
figure, axes = plt.subplots(1, 5, figsize=(9, 2.6))
for cluster, ax in enumerate(axes):
    gain = np.asarray(words[model.labels_ == cluster].mean(0) - words.mean(0)).ravel()
    top = np.argsort(gain)[-6:]
    ax.barh(names[top], gain[top], color=f"C{cluster}")
    ax.set_title(f"cluster {cluster}", fontsize=9)
    ax.tick_params(labelsize=7)
    ax.set_xticks([])
figure.tight_layout()
