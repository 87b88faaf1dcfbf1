"""Runs the llama.cpp server of PyPI's xllamacpp with the options in one JSON argument."""

import json
import sys
import threading

import xllamacpp

options = json.loads(sys.argv[1])
params = xllamacpp.CommonParams()
params.model.path = options["file"]
params.hostnames = ["127.0.0.1"]
params.port = options["port"]
params.n_parallel = options["slots"]
params.n_ctx = 512 * options["slots"]
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
if "key" in options:
    params.api_keys = [options["key"]]
if "template" in options:
    params.chat_template = options["template"]
server = xllamacpp.Server(params)
threading.Event().wait()
