"""Methods to compare with, one file each. `prodsc.estimators` has the interface they share."""

from prodsc.baselines.cpp import CPP, choose_k
from prodsc.baselines.dsc_net import DSCNet
from prodsc.baselines.edesc import EDESC
from prodsc.baselines.mlc import MLC
from prodsc.baselines.scan import SCAN
from prodsc.baselines.senet import SENet
from prodsc.baselines.temi import TEMI
from prodsc.baselines.turtle import TURTLE, cross_validated_accuracy

__all__ = [
    "CPP",
    "EDESC",
    "MLC",
    "SCAN",
    "TEMI",
    "TURTLE",
    "DSCNet",
    "SENet",
    "choose_k",
    "cross_validated_accuracy",
]
