import pytest

from strobe.ingest.building.precision import precision_of


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("volta_sgemm_64x64_nt", "float32"),
        ("ampere_sgemm_32x32_sliced1x4_tn", "float32"),
        ("cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1", "float32"),
        ("void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3>(int)", "float32"),
        ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3>(int)", "float32"),
        ("void wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5>(int)", "float32"),
        ("Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1_SN", "float32"),
        ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(P)", "float32"),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x4_nn>(P)", "tf32"),
        ("sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc", "tf32"),
        ("void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32>", "tf32"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128>(P)", "bfloat16"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64", "bfloat16"),
        ("Cijk_Ailk_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32", "bfloat16"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64", "bfloat16"),
        ("igemm_bwd_gtcx3_nhwc_bf16_bx0_ex1_bt256x64x32", "bfloat16"),
        ("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized>", "bfloat16"),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "float16"),
        ("ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_nn", "float16"),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, cutlass::half_t>>",
         "float16"),
        ("volta_dgemm_64x64_nt", "float64"),
        ("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>", ""),
        ("void fbgemm_gpu::permute_2D_lengths_kernel<float>(int)", ""),
        ("batched_transpose_32x32_half", ""),
        ("MatMulV3", ""),
    ],
)  # fmt: skip
def test_names_of_real_kernels(name, precision):
    assert precision_of(name) == precision


def test_every_word_of_a_product_is_among_those_looked_for_first():
    alternatives = """fooGEMM gemv scudnn HCUDNN convolve Winograd dgrad2d_engine wgrad_alg0_engine
        nvjet Cijk_ miopenSp3 xmma_x_fprop tensorop_dgrad simt_wgrad flash_fwd flash_bwd fmha
        _matmul_"""
    for name in alternatives.split():
        assert precision_of(f"{name}<float>") == "float32", name
