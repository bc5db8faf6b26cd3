"""The estimators: PRO-DSC, and SEDSC as the same code with one term less."""

from prodsc.methods.cpp import CPP, choose_k
from prodsc.methods.diagnosis import Diagnosis, diagnose
from prodsc.methods.dsc_net import DSCNet
from prodsc.methods.edesc import EDESC
from prodsc.methods.mlc import MLC
from prodsc.methods.pro_dsc import PRODSC
from prodsc.methods.registry import load
from prodsc.methods.scan import SCAN
from prodsc.methods.sedsc import SEDSC
from prodsc.methods.senet import SENet
from prodsc.methods.temi import TEMI
from prodsc.methods.turtle import TURTLE, cross_validated_accuracy

__all__ = [
    "CPP",
    "EDESC",
    "MLC",
    "PRODSC",
    "SCAN",
    "SEDSC",
    "TEMI",
    "TURTLE",
    "DSCNet",
    "Diagnosis",
    "SENet",
    "choose_k",
    "cross_validated_accuracy",
    "diagnose",
    "load",
]
