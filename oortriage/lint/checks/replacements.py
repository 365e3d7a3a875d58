"""What took the place of options and variables that are gone, and what those do that never did anything."""

from __future__ import annotations

#: Name: what to write instead. A text, because some became a part of another option.
INSTEAD = {
    "VLLM_ATTENTION_BACKEND": "write --attention-backend NAME (from 0.13.0)",
    "VLLM_USE_V1": "there is no other engine any more; take it out",
    "VLLM_FLASH_ATTN_VERSION": "write --attention-config.flash_attn_version N (from 0.13.0)",
    "VLLM_USE_TRTLLM_ATTENTION": "write --attention-config.use_trtllm_attention (from 0.13.0)",
    "VLLM_DISABLE_FLASHINFER_PREFILL": "write --attention-config.disable_flashinfer_prefill (from 0.13.0)",
    "VLLM_V1_USE_PREFILL_DECODE_ATTENTION": "write --attention-config.use_prefill_decode_attention (from 0.13.0)",
    "VLLM_TORCH_PROFILER_DIR": "write --profiler-config (from 0.13.0)",
    "VLLM_TORCH_PROFILER_WITH_PROFILE_MEMORY": "write --profiler-config (from 0.13.0)",
    "--swap-space": "only the V0 engine swapped to CPU memory; take it out",
    "--preemption-mode": "the V1 engine always recomputes; take it out",
    "--max-seq-len-to-capture": "write --max-cudagraph-capture-size (sequences, from 0.11.1)",
    "--cuda-graph-sizes": "write --cudagraph-capture-sizes (from 0.11.1)",
    "--num-scheduler-steps": "the V1 engine has no multi-step scheduling; take it out",
    "--use-v2-block-manager": "it has been the only block manager since 0.6.3.post1; take it out",
    "--quantization-param-path": "KV scales come from the checkpoint; take it out",
    "--calculate-kv-scales": "KV scales come from the checkpoint; take it out",
    "--disable-log-requests": "logging of requests is off unless --enable-log-requests",
    "--enable-reasoning": "write --reasoning-parser NAME alone",
    "--guided-decoding-backend": "write --structured-outputs-config",
    "--speculative-model": "write --speculative-config '{\"model\": ...}'",
    "--num-speculative-tokens": "write --speculative-config '{\"num_speculative_tokens\": ...}'",
    "--rope-scaling": "write --hf-overrides '{\"rope_scaling\": ...}'",
    "--rope-theta": "write --hf-overrides '{\"rope_theta\": ...}'",
    "--task": "write --runner and --convert",
    "--device": "the platform is found by vLLM itself",
    "vllm.entrypoints.api_server": "write `vllm serve MODEL`",
    "attention_backend": "set VLLM_ATTENTION_BACKEND=FLASH_ATTN in the environment (0.5.4 to 0.14.1)",
}
