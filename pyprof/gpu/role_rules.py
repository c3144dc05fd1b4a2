"""Words in a kernel's path that give away its role. Data: first match wins, in this order.

A new family of kernels is one more word here, and one row in the test of real names.
"""

from __future__ import annotations

from enum import Enum


class Role(str, Enum):
    """What a kernel does, judged by its name."""

    GEMM = "gemm"
    CONV = "conv"
    ATTENTION = "attention"
    LINEAR_ATTENTION = "linear attention"
    """Its state has a fixed size: Mamba and other state space models, gated delta rule."""
    RNN = "rnn"
    SPLITK = "splitk"
    """Adds up the partial results of a split GEMM, convolution or attention."""
    LAYOUT = "layout"
    """Rearranges or transforms operands: transposes, im2col, Winograd and FFT transforms."""
    SETUP = "setup"
    """Prepares another kernel: pointer and offset tables, attention's pre- and postprocessing."""
    ELEMENTWISE = "elementwise"
    REDUCE = "reduce"
    SOFTMAX = "softmax"
    NORM = "norm"
    LOSS = "loss"
    POOL = "pool"
    INDEX = "index"
    """Gather, scatter, embedding, sort, top-k."""
    COPY = "copy"
    FILL = "fill"
    RANDOM = "random"
    OPTIMIZER = "optimizer"
    COMM = "comm"
    TRITON = "triton"
    MEMSET = "memset"
    MEMCPY = "memcpy"
    OTHER = "other"


_COMMUNICATES = (
    # not what Inductor fused of the ops around a collective, nor a matrix product
    r"^(?!triton_(?:poi|red|per|for)_|.*(?:(?<!fb)gemm|matmul))"
    r"(?:.*(?:(?:n|r|x|h|ms|one)ccl|hcom_|nvshmem|horovod|userbuffers|multimem_|cross_device_"
    r"|_on_stream_kernel"  # NVSHMEM's, without its name
    r"|lamport(?!_?init)"
    # collectives by their own names; not one among a block's threads, nor a copy to or from it
    r"|(?<!block)(?<!block_)(?<!warp)(?<!warp_)all_?reduce"
    r"|all_?gather(?!_copy)|(?<!block_)reduce_?scatter|all_?to_?all"
    # tokens to their experts and back: DeepEP and its kin, MORI, pplx; not the plan for it
    r"|(?:^|_|::)ep::(?!.*layout)|(?:^|::)Ep(?:Dispatch|Combine)|a2a_?(?:dispatch|combine))"
    # PyTorch's own ops, waiting for them among these, and ranges of a backend's own
    r"|_?c10d(?:_functional)?::(?!checkForNaN|quantization)|symm_mem::|_C_custom_ar::"
    r"|record_param_comms|(?:gloo|mpi|ucc):\w)"
)
"""A kernel, or an op on a CPU, that sends to other devices or waits for them.

A fused all-reduce and norm is communication: it takes as long as the others let it. A matrix
product that sends its result while it computes is a product.
"""

PATH_RULES: tuple[tuple[Role, str], ...] = (
    (Role.COMM, _COMMUNICATES),
    (Role.TRITON, r"^triton_"),
    # ops on a CPU by their own names, which also have words of other roles
    (Role.CONV, r"^\w+::\w*conv\w*_transpose"),
    (Role.GEMM, r"^\w+::q?_?linear(?!_att)"),
    # cuBLAS dot and cuBLASLt, cuDNN weight gradients, flash decoding
    (Role.SPLITK, (
     r"split_?k_?reduc|reduce_?split_?k|reduce_wgrad|wgrad\w*_reduce|reduce_1Block|splitkv_combine"
     r"|FlashAtt(n|ention)F(wd|orward)Combine|stream_k_fixup|nvfuser_splitk|SplitKVCombine|fmhaReduction"
     r"|ll4mi_reduce|finalize_matmul|merge_attn_states|MergeState(s|$|Kernel|InPlace)"
     r"|mla_combine|MlaReduction|_fwd_kernel_stage2|^reduce_segments|AttentionSumKernel")),
    (Role.SETUP, (
     r"compute\w*Offsets|compute_gemm_pointers|compute\w*Strides|precompute_indices"
     r"|flash_bwd_(dot|convert|clear)"
     r"|FlashAtt(n|ention)B(wd|ackward)(Dkv)?(Pre|Post)process|compute_dot_do_o|convert_dq|prepare_varlen"
     r"|FmhaBwd(OGradDotO|ConvertQGrad)|FmhaKernelBwd(SumOdO|Convert)|create_\w*kv_indices|get_mla_metadata|clean_logits"
     r"|compute_?problem_?sizes|compute_expert_(blockscale_)?offsets|compute_arg_sorts"
     r"|get_dispatch_layout|fp32_into_ue8m0|block_scaled_swizzle|A2A(Prepare|Sanitize)")),
    # into the cache of keys and values
    (Role.COPY, (
     r"reshape_and_cache|concat_and_cache|store_(kv)?cache|append(Paged)?KV|set_\w*kv_buffer"
     r"|indexer_k_quant_and_cache|cp_gather_\w*cache|gather_and_maybe_dequant")),
    # TensorRT-LLM's plan of experts; `renormalize` is one of its ways to choose
    (Role.INDEX, r"^(moe::dev::)?routing|expandInputRows|ExpertPrefixSum|BuildExpertMaps"),
    # attention without a softmax: state spaces, gated delta rules and their kin
    (Role.LINEAR_ATTENTION, (
     r"(^|_|::)chunk_(scan|state|gated|fwd|bwd|kda|delta|gla|simple)|bmm_chunk_|state_passing_"
     r"|selective_(scan|state)|_ssu_|delta_rule|(^|_|::)(kda|gdn|mamba2?)_|Gdn\w*Cfg"
     r"|wy_repr|recompute_w_u|linear_att|lightning_att|scaled_dot_kkt|gdn_gating"
     r"|(merge|solve)_\w*(inverse|tril)|seg_la_|fused_recurrent")),
    (Role.LAYOUT, (
     r"n(chw|hwc)To|n(chw|hwc)2|im2col|col2im|vol2col|col2vol|reformat|generateWinogradTiles"
     r"|winograd(Forward|Backward|Wgrad)?(Data|Filter|Output|Delta)|fft\dd_(r2c|c2r)|fft_[rc]2[rc]"
     r"|flip_filter|transpose|permute|tensorTransform|convertTensor|scale_interleave|strided_dgrad_indexed|nvfuser_transpose")),
    # a library may be called FlashInfer and do anything
    (Role.ATTENTION, (
     r"flash(?!_?infer)|fmha|sdpa|attention|attn|_mha(_|$)|(Prefill|Decode)With\w*KV|mem_eff"
     r"|_fwd_kernel_aligned|_fwd_(grouped_)?kernel_stage1|BatchPOD"
     r"|(sparse|mla|msa)_(prefill|decode)")),
    (Role.RNN, r"persist\w*RNN|RNN_\w*persist"),
    (Role.ELEMENTWISE, r"RNNcell|(lstm|gru)_cell"),
    (Role.POOL, r"(?<!token_)pool|roi_?align|upsample|interpolat|grid_?sampl|resize"),
    (Role.SOFTMAX, r"soft_?max"),
    (Role.NORM, (
     r"(batch|layer|group|rms|instance|weight|re|l2|qk|gemma)_?norm(?!_gemm)|(^|::|_)bn_(fw|bw)|(^|::|_)ln_(fw|bw)"
     r"|RowwiseMoments|ComputeInternalGradients|ComputeGradientFusedParams|GammaBeta|welford"
     r"|compute_stats|genericReduceBN|^cu(Apply|Compute)\w*(GradInput|GradGamma)")),
    (Role.CONV, (
     r"conv(?!er[ts])|[sh]cudnn|\d(cudnn|fprop|dgrad|wgrad)|fprop|dgrad|wgrad|winograd|depthwise"
     r"|grouped_direct|direct_group|igemm_(fwd|bwd|wrw)")),
    (Role.GEMM, (
     # Gemma is a model; FBGEMM and DeepGEMM are libraries
     r"(?<!deep_)(?<!fb)gemm(?!a(?:_|\d|$))|nvjet|gemv|matmul|(^|_|::)b?mm(_|$)|dot_kernel|^Cijk_"
     r"|mul_mat|marlin|trsm|_mm_sm\d|flatmm|fused_moe_kernel|fmoe_|mqa_logits|machete|mega_moe"
     r"|wvSplitK|LLMM1|lora_(shrink|expand|[ab]_)|_sgmv_|bgmv"
     r"|deep_gemm::\w*(einsum|bmk_bnk|bhr_hdr)|scaled_mm")),
    (Role.LOSS, r"nll_?loss|ClassNLLCriterion|ctc_|cross_?entropy|_loss"),
    (Role.INDEX, r"top_?k_?top_?p|TopK\w*Sampling"),
    (
        Role.RANDOM,
        r"Sampling(From|Kernel)|rejection_\w*sample|sample_recovered|distribution_|dropout|philox|curand|bernoulli|multinomial|randperm",
    ),
    (Role.INDEX, (
     r"gather|scatter|index|embedding|sort|top_?k|nonzero|masked|unique|searchsorted"
     r"|DeviceSelect|DeviceCompact|take_|(?<!out)(?<!in)put_|indices|routing(?!\w*memset)|bitmatrix|token_ids|row_id_map|(^|::|_)nms_"
     # tokens to their experts and back
     r"|moe_align|moe_sum|moe::\w+::finalize|shuffle_mul_sum"
     # bookkeeping of a serving engine: where the data of each request is
     r"|slot_mapping|req_to_token|compute_position|alloc_(extend|decode)_|get_last_loc|moe_fused_gate")),
    (Role.OPTIMIZER, r"multi_tensor|adamw?(_|$)|FusedAdam|(^|_)sgd|lamb(_|$)"),
    (Role.COPY, r"CatArray|copy|clone|memcpy|_split_reshape_cat"),
    (Role.FILL, r"(^|_|::)fill|scalePackedTensor|memset|set_zero"),
    (Role.REDUCE, r"reduc|(^|::|_)scan|DeviceScan|cumsum|cumprod|nvfuser_\w*persistent|^rocprim::"),
    (Role.REDUCE, r"^cupy_(sum|prod|a?max|a?min|mean|any|all|arg)"),
    (Role.ELEMENTWISE, (
     r"element_?wise|pointwise|PointwiseApply|^cupy_|_cuda_?kernel_?impl|op_tensor"
     r"|act_and_mul|(^|_)clamp_|transform_bias_rescale|swiglu|geglu|silu|gelu|rotary|rope(?!r)"
     # to and from narrow numbers
     r"|quantiz|_quant_|quant_(fp|8bit|kernel)|cvt_\w*to_fp4|_per_token_group|scaled_fp8|cast_to_fp8"
     r"|hadamard_transform"
     # logits that a request may not have
     r"|convert_fp8|repetition_penalt|bitmask_inplace"
     # TransformerEngine's, TensorRT-LLM's
     r"|^transformer_engine::.*(unary|gated|cast)|do(Gated)?ActivationKernel"
     r"|^moe::dev::(activation|convertsf)")),
)  # fmt: skip
"""Searched in the path, ignoring case."""

FUNCTOR_RULES: tuple[tuple[Role, str], ...] = (
    (
        Role.COPY,
        r"direct_copy_kernel|copy_device_to_device|float\w*_copy_kernel|::Copy(Identity)?<",
    ),
    (Role.FILL, r"FillFunctor|fill_kernel_cuda"),
    (Role.INDEX, r"index_kernel_impl|index_put|gpu_index_kernel"),
    (Role.RANDOM, r"bernoulli|random_from_to|uniform_and_transform"),
)
"""Searched in the first template arguments of a kernel that applies a functor to elements."""

APPLIES_FUNCTOR = (Role.ELEMENTWISE, Role.OPTIMIZER)
"""Roles whose kernels apply a functor, which may give them another."""

GENERIC_PATH = r"(cutlass|cute|xmma|cask|cudnn|gemm).*::(device_)?kernel2?$|^(device_)?kernel2?$"
"""A path without meaning, such as `cutlass::Kernel2`: the template arguments count."""

TEMPLATE_ROLES = frozenset({Role.SPLITK, Role.SETUP, Role.ATTENTION, Role.CONV, Role.GEMM})
"""Roles searched for in template arguments: other words in a long template name its parts."""
