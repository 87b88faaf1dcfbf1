"""llama.cpp, a call for all rows: reads lines `<rows> <tokens>`, and says for each the tokens a second that it wrote.

It has the rows in one batch, as its server has them; without the server's HTTP and Python's, so it is the most it can do.
"""

import ctypes
import sys
import time

import llama_cpp as llama
import numpy as np

PROMPT = 37
MOST_ROWS = 8


def main() -> None:
    llama.llama_backend_init()
    choices = llama.llama_model_default_params()
    # With them llama-cpp-python 0.3.36 crashed on the machine of bench/README.md, whose CPU has AMX.
    choices.use_extra_bufts = False
    model = llama.llama_model_load_from_file(sys.argv[1].encode(), choices)
    settings = llama.llama_context_default_params()
    settings.n_ctx = MOST_ROWS * 256
    settings.n_seq_max = MOST_ROWS
    settings.n_threads = settings.n_threads_batch = 1
    context = llama.llama_init_from_model(model, settings)
    batch = llama.llama_batch_init(MOST_ROWS * PROMPT, 0, 1)
    vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
    print("ready", flush=True)
    for line in sys.stdin:
        rows, tokens = map(int, line.split())
        llama.llama_memory_clear(llama.llama_get_memory(context), True)
        _decode(context, batch, [(5 + at, at, row) for row in range(rows) for at in range(PROMPT)])
        next_ids = [100 + row for row in range(rows)]
        began = time.perf_counter()
        for step in range(tokens):
            _decode(context, batch, [(next_ids[row], PROMPT + step, row) for row in range(rows)])
            for row in range(rows):
                logits = llama.llama_get_logits_ith(context, row)
                values = memoryview((ctypes.c_float * vocabulary).from_address(ctypes.addressof(logits.contents)))
                next_ids[row] = int(_argmax(values))
        print(rows * tokens / (time.perf_counter() - began), flush=True)


def _argmax(values: memoryview) -> int:
    return np.frombuffer(values, np.float32).argmax()


def _decode(context: object, batch: object, entries: list[tuple[int, int, int]]) -> None:
    batch.n_tokens = len(entries)
    for at, (token, position, row) in enumerate(entries):
        batch.token[at], batch.pos[at], batch.n_seq_id[at] = token, position, 1
        batch.seq_id[at][0] = row
        batch.logits[at] = position >= PROMPT - 1
    if llama.llama_decode(context, batch) != 0:
        raise RuntimeError("llama_decode failed")


if __name__ == "__main__":
    main()
