"""Descriptors: where a solution belongs."""

from vqelites.descriptors.autoencoder import AutoEncoder as AutoEncoder
from vqelites.descriptors.base import AbstractDescriptor as AbstractDescriptor
from vqelites.descriptors.base import LearnInfo as LearnInfo
from vqelites.descriptors.choices import Chosen as Chosen
from vqelites.descriptors.choices import chosen as chosen
from vqelites.descriptors.handcoded import HandCoded as HandCoded
from vqelites.descriptors.layers import AbstractLayer as AbstractLayer
from vqelites.descriptors.layers import per_sample as per_sample
from vqelites.descriptors.training import Training as Training
from vqelites.descriptors.vqvae import VQVAE as VQVAE
