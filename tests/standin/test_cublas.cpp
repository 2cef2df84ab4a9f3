/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for cuBLASLt, against sums written down for each element: types, orders, transposes, batches,
 * epilogues; a call that cuBLASLt would refuse or compute wrongly ends the process. */
#include "standin.h"

#include <check.h>
#include <cmath>
#include <random>
#include <signal.h>
#include <string.h>
#include <vector>

#include <cublasLt.h>

namespace
{
/* One product; defaults are those of cuBLASLt. */
struct job {
    cudaDataType in = CUDA_R_32F, out = CUDA_R_32F, scale = CUDA_R_32F;
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    int m = 5, n = 7, k = 3, batches = 1, gap = 0; /* gap: by which leading dimensions are longer */
    cublasOperation_t ta = CUBLAS_OP_N, tb = CUBLAS_OP_N;
    cublasLtOrder_t order = CUBLASLT_ORDER_COL;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    double alpha = 1, beta = 0;
    size_t workspace = 1 << 20, offset = 0; /* bytes of workspace; elements before A */
    uint32_t alignment = 256;
};

struct matrix {
    cudaDataType type;
    int64_t rows, cols, ld, stride;
    bool row_major;
    std::vector<double> values; /* as they are stored */
    char *device;

    int64_t at(int64_t batch, int64_t i, int64_t j) const
    {
        return batch * stride + (row_major ? i * ld + j : i + j * ld);
    }
};

size_t size_of(cudaDataType type)
{
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

/* Small multiples of 1/4, which every type has exactly, so that only what is added up is ever rounded. */
std::vector<char> packed(cudaDataType type, const std::vector<double> &values)
{
    std::vector<char> bytes(values.size() * size_of(type));
    for (size_t i = 0; i < values.size(); i++) {
        const float f = (float)values[i];
        const int quarters = (int)std::lround(std::fabs(values[i]) * 4);
        int power = 0;
        for (; quarters >> (power + 1); power++)
            ;
        uint16_t half = (uint16_t)(quarters ? (power + 13) << 10 | ((quarters << 10 >> power) & 1023) : 0);
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        half |= values[i] < 0 ? 0x8000 : 0;
        const uint16_t bf16 = (uint16_t)(bits >> 16);
        const void *from = type == CUDA_R_64F   ? (const void *)&values[i]
                           : type == CUDA_R_32F ? (const void *)&f
                           : type == CUDA_R_16F ? (const void *)&half
                                                : (const void *)&bf16;
        memcpy(&bytes[i * size_of(type)], from, size_of(type));
    }
    return bytes;
}

double unpacked(cudaDataType type, const char *from)
{
    double d;
    float f;
    uint16_t h;
    memcpy(&d, from, type == CUDA_R_64F ? sizeof d : 0);
    memcpy(&f, from, type == CUDA_R_32F ? sizeof f : 0);
    memcpy(&h, from, size_of(type) == 2 ? sizeof h : 0);
    if (size_of(type) != 2)
        return type == CUDA_R_64F ? d : f;
    if (type == CUDA_R_16F)
        return (h >> 15 ? -1 : 1) *
               ((h >> 10 & 31) ? std::ldexp(1024 + (h & 1023), (h >> 10 & 31) - 25) : std::ldexp(h & 1023, -24));
    const uint32_t bits = (uint32_t)h << 16;
    memcpy(&f, &bits, sizeof f);
    return f;
}

matrix make(cudaDataType type, int64_t rows, int64_t cols, const job &j, size_t offset)
{
    static std::mt19937 random(1);
    matrix x = {type, rows, cols, 0, 0, j.order == CUBLASLT_ORDER_ROW, {}, nullptr};
    x.ld = (x.row_major ? cols : rows) + j.gap;
    x.stride = x.ld * (x.row_major ? rows : cols) + 2 * j.gap;
    x.values.resize((size_t)(x.stride * j.batches));
    for (double &v : x.values)
        v = ((int)(random() % 33) - 16) / 4.0;
    const auto bytes = packed(type, x.values);
    cudaMalloc((void **)&x.device, bytes.size() + offset * size_of(type));
    x.device += offset * size_of(type);
    cudaMemcpy(x.device, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
    return x;
}

cublasLtMatrixLayout_t layout_of(const matrix &x, const job &j)
{
    cublasLtMatrixLayout_t l;
    const int32_t order = j.order, batches = j.batches;
    cublasLtMatrixLayoutCreate(&l, x.type, (uint64_t)x.rows, (uint64_t)x.cols, x.ld);
    cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order);
    cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches);
    cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &x.stride, sizeof x.stride);
    return l;
}

double expected_at(const job &j, const matrix &a, const matrix &b, const matrix &c, const matrix &bias, int64_t batch,
                   int64_t row, int64_t col)
{
    double sum = 0;
    for (int64_t k = 0; k < j.k; k++)
        sum += a.values[(size_t)(j.ta == CUBLAS_OP_N ? a.at(batch, row, k) : a.at(batch, k, row))] *
               b.values[(size_t)(j.tb == CUBLAS_OP_N ? b.at(batch, k, col) : b.at(batch, col, k))];
    sum = j.alpha * sum + j.beta * c.values[(size_t)c.at(batch, row, col)];
    if (j.epilogue & CUBLASLT_EPILOGUE_BIAS)
        sum += bias.values[(size_t)row];
    return j.epilogue & CUBLASLT_EPILOGUE_RELU && sum < 0 ? 0 : sum;
}

/* Runs a job; its status where it did not run. */
cublasStatus_t run(const job &j, std::vector<double> *to = nullptr, std::vector<double> *expected = nullptr)
{
    const bool ta = j.ta != CUBLAS_OP_N, tb = j.tb != CUBLAS_OP_N;
    const matrix a = make(j.in, ta ? j.k : j.m, ta ? j.m : j.k, j, j.offset),
                 b = make(j.in, tb ? j.n : j.k, tb ? j.k : j.n, j, 0), c = make(j.out, j.m, j.n, j, 0),
                 bias = make(j.out, j.m, 1, {}, 0);
    const cublasLtMatrixLayout_t la = layout_of(a, j), lb = layout_of(b, j), lc = layout_of(c, j);
    const double alpha = j.alpha, beta = j.beta;
    const float alpha32 = (float)alpha, beta32 = (float)beta;
    const bool is_double = j.scale == CUDA_R_64F;
    const int32_t ops[2] = {j.ta, j.tb};
    const uint32_t epilogue = j.epilogue;
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t d;
    cublasLtMatmulPreference_t want;
    cublasLtMatmulHeuristicResult_t how;
    int found;
    void *workspace;

    cublasLtCreate(&handle);
    cublasLtMatmulDescCreate(&d, j.compute, j.scale);
    cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_TRANSA, &ops[0], sizeof ops[0]);
    cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_TRANSB, &ops[1], sizeof ops[1]);
    cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (j.epilogue & CUBLASLT_EPILOGUE_BIAS)
        cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias.device, sizeof bias.device);
    cublasLtMatmulPreferenceCreate(&want);
    const uint64_t most = 1 << 20;
    cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    for (int i = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; i <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; i++)
        cublasLtMatmulPreferenceSetAttribute(want, (cublasLtMatmulPreferenceAttributes_t)i, &j.alignment,
                                             sizeof j.alignment);
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, d, la, lb, lc, lc, want, 1, &how, &found);
    if (status)
        return status;
    cudaMalloc(&workspace, j.workspace);
    status = cublasLtMatmul(handle, d, is_double ? (const void *)&alpha : &alpha32, a.device, la, b.device, lb,
                            is_double ? (const void *)&beta : &beta32, c.device, lc, c.device, lc, &how.algo, workspace,
                            j.workspace, nullptr);
    if (status || !to)
        return status;
    std::vector<char> bytes(c.values.size() * size_of(j.out));
    cudaMemcpy(bytes.data(), c.device, bytes.size(), cudaMemcpyDeviceToHost);
    for (int64_t batch = 0; batch < j.batches; batch++)
        for (int64_t row = 0; row < j.m; row++)
            for (int64_t col = 0; col < j.n; col++) {
                to->push_back(unpacked(j.out, &bytes[(size_t)c.at(batch, row, col) * size_of(j.out)]));
                expected->push_back(expected_at(j, a, b, c, bias, batch, row, col));
            }
    return status;
}

/* tolerance: of the type of the result, relative to a sum that may be as large as 100. */
void check(const job &j, double tolerance)
{
    std::vector<double> to, expected;
    ck_assert_int_eq(run(j, &to, &expected), CUBLAS_STATUS_SUCCESS);
    for (size_t i = 0; i < to.size(); i++)
        ck_assert_double_le(std::fabs(to[i] - expected[i]), tolerance * 100);
}

job in_type(int i)
{
    static const cudaDataType ins[] = {CUDA_R_64F, CUDA_R_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF, CUDA_R_16BF},
                              outs[] = {CUDA_R_64F, CUDA_R_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F};
    job j;
    j.in = ins[i];
    j.out = outs[i];
    j.scale = i ? CUDA_R_32F : CUDA_R_64F;
    j.compute = i == 0 ? CUBLAS_COMPUTE_64F : i == 2 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    return j;
}
const double tolerances[] = {1e-15, 1e-7, 1e-7, 0x1p-11, 0x1p-8, 1e-7};
} // namespace

START_TEST(all_types_orders_and_transposes)
{
    for (int round = 0; round < 64; round++) {
        job j = in_type(_i);
        j.ta = round & 1 ? CUBLAS_OP_T : CUBLAS_OP_N;
        j.tb = round & 2 ? CUBLAS_OP_T : CUBLAS_OP_N;
        j.order = round & 4 ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
        j.gap = round & 8 ? 3 : 0;
        j.batches = round & 16 ? 3 : 1;
        j.alpha = round & 32 ? -0.5 : 1;
        j.beta = round & 32 ? 2 : 0;
        check(j, tolerances[_i]);
    }
}
END_TEST

START_TEST(epilogues_follow_the_product)
{
    for (int type = 1; type < 6; type++)
        for (cublasLtEpilogue_t e : {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS}) {
            job j = in_type(type);
            j.epilogue = e;
            j.beta = 1;
            check(j, tolerances[type]);
        }
}
END_TEST

START_TEST(what_cublaslt_cannot_is_not_supported)
{
    job mixed = in_type(3), bias = in_type(0), scale = in_type(1);
    mixed.out = CUDA_R_16BF;
    bias.epilogue = CUBLASLT_EPILOGUE_BIAS;
    scale.scale = CUDA_R_64F;
    for (const job &j : {mixed, bias, scale})
        ck_assert_int_eq(run(j), CUBLAS_STATUS_NOT_SUPPORTED);
}
END_TEST

START_TEST(less_alignment_is_fine_where_it_was_asked_for)
{
    job j;
    j.offset = 1;
    j.alignment = 4;
    check(j, 1e-7);
}
END_TEST

START_TEST(a_mistake_aborts)
{
    job j;
    if (_i == 0)
        j.m = 0;
    else if (_i == 1)
        j.gap = -1;
    else if (_i == 2)
        j.workspace = 1000;
    else
        j.offset = 1; /* the algorithm was asked for 256 bytes */
    run(j);
}
END_TEST

int main(void)
{
    setenv("TRAMA_STANDIN_GPUS", "1", 1);
    Suite *suite = suite_create("cublas");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, all_types_orders_and_transposes, 0, 6);
    tcase_add_test(all, epilogues_follow_the_product);
    tcase_add_test(all, what_cublaslt_cannot_is_not_supported);
    tcase_add_test(all, less_alignment_is_fine_where_it_was_asked_for);
    tcase_add_loop_test_raise_signal(all, a_mistake_aborts, SIGABRT, 0, 4);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
