"""The bare engine, for comparison: OpenVINO's pipeline in a process of its own, nothing around it.

Reads one JSON job a line on standard input, `{"prompts": [[…token ids…], …], "max_tokens": 64}`,
and answers with one JSON line. Idle, it uses no processor.
"""

import json
import sys
import time
from typing import Any

import numpy as np
import openvino
import openvino_genai

from antiphon.engine.config import decode_config
from antiphon.engine.openvino.loading import build_pipeline


def run(pipeline: Any, prompts: list[list[int]], max_tokens: int, first_id: int) -> dict[str, Any]:
    """All prompts at once, read to the end. Seconds from the first add_request."""
    started = time.perf_counter()
    handles = []
    for index, prompt in enumerate(prompts):
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = max_tokens
        config.ignore_eos = True
        config.do_sample = True
        config.temperature = 0.2
        config.top_p = 0.9
        config.rng_seed = index + 1
        tensor = openvino.Tensor(np.array([prompt], dtype=np.int64))
        handles.append(pipeline.add_request(first_id + index, tensor, config))
    tokens = 0
    first: float | None = None
    while pipeline.has_non_finished_requests():
        pipeline.step()
        for handle in handles:
            while handle.can_read():
                tokens += sum(len(out.generated_ids) for out in handle.read().values())
                first = first or time.perf_counter() - started
    return {"tokens": tokens, "wall_s": time.perf_counter() - started, "first_s": first}


def main() -> None:
    config, kv_blocks = sys.argv[1:]
    pipeline = build_pipeline(decode_config(config), int(kv_blocks))
    run(pipeline, [[1, 2, 3]], 4, 1)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    next_id = 1000
    for line in sys.stdin:
        job = json.loads(line)
        result = run(pipeline, job["prompts"], job["max_tokens"], next_id)
        next_id += len(job["prompts"])
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
