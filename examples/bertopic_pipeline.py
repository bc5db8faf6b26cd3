"""PRO-DSC as the clustering step of BERTopic; needs `pip install bertopic`.

python examples/bertopic_pipeline.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from prodsc import PRODSC


def main(folder: Path) -> None:
    from bertopic import BERTopic
    from bertopic.dimensionality import BaseDimensionalityReduction

    folder.mkdir(parents=True, exist_ok=True)

    rng = np.random.default_rng(0)
    subjects = [
        "invoice refund payment card receipt",
        "password login account email code",
        "parcel courier late box address",
    ]
    texts = [" ".join(rng.choice(subjects[i % 3].split(), 4)) + " please help" for i in range(300)]
    embeddings = TruncatedSVD(10, random_state=0).fit_transform(TfidfVectorizer().fit_transform(texts))

    topics = BERTopic(
        umap_model=BaseDimensionalityReduction(),  # PRO-DSC works on the embeddings themselves
        hdbscan_model=PRODSC(3, epochs=60),
        vectorizer_model=CountVectorizer(stop_words="english"),
    )
    topics.fit(texts, embeddings)
    print(topics.get_topic_info()[["Topic", "Count", "Name"]])
    report = topics.hdbscan_model.report(embeddings, texts=texts, title="Topics")
    print(report.names)
    print(report.save(folder / "report.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/bertopic"))
