"""Support tickets as texts: topics with keywords, and a page that searches the texts.

    python examples/tickets.py [FOLDER]

The features here are TF-IDF, which needs no download. `prodsc extract tickets.csv --text body --id ticket
--encoder minilm -o tickets.npz` makes better ones.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from prodsc import PRODSC

SUBJECTS = {
    "billing": "invoice refund charged twice card payment receipt tax amount wrong",
    "login": "password reset login locked account code email link expired",
    "delivery": "parcel late courier tracking address damaged box missing item",
    "app": "screen crashes update phone button slow freezes version install",
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)

    rng = np.random.default_rng(0)
    subject = rng.integers(len(SUBJECTS), size=400)
    words = [text.split() for text in SUBJECTS.values()]
    polite = ["hello", "please", "help", "thanks", "since", "yesterday", "my", "the", "again"]
    tickets = [" ".join(rng.permutation([*rng.choice(words[s], 5), *rng.choice(polite, 3)])) for s in subject]

    X = TruncatedSVD(20, random_state=0).fit_transform(TfidfVectorizer().fit_transform(tickets))
    model = PRODSC(4, epochs=60).fit(X)
    report = model.report(X, texts=tickets, ids=[f"T{i:04d}" for i in range(400)], title="Support tickets")
    for name, rows in zip(report.names, model.exemplars_, strict=True):
        print(f"{name}: {tickets[rows[0]]}")
    print(report.save(folder / "report.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/tickets"))
