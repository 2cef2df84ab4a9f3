/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for CUDA (standin.h): handles and descriptors of cuBLASLt and cuBLAS, and the names of their
 * statuses. */
#include "cublas.h"

#include <string.h>

using namespace standin;

namespace
{
struct slot {
    int attribute;
    size_t at, bytes;
};

#define SLOT(attribute, type, member)                                                                                  \
    {                                                                                                                  \
        attribute, offsetof(type, member), sizeof(((type *)nullptr)->member)                                           \
    }
const slot of_layout[] = {
    SLOT(CUBLASLT_MATRIX_LAYOUT_TYPE, layout, type),
    SLOT(CUBLASLT_MATRIX_LAYOUT_ORDER, layout, order),
    SLOT(CUBLASLT_MATRIX_LAYOUT_ROWS, layout, rows),
    SLOT(CUBLASLT_MATRIX_LAYOUT_COLS, layout, cols),
    SLOT(CUBLASLT_MATRIX_LAYOUT_LD, layout, ld),
    SLOT(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, layout, batches),
    SLOT(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, layout, stride),
};
const slot of_description[] = {
    SLOT(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, description, compute),
    SLOT(CUBLASLT_MATMUL_DESC_SCALE_TYPE, description, scale),
    SLOT(CUBLASLT_MATMUL_DESC_POINTER_MODE, description, pointer_mode),
    SLOT(CUBLASLT_MATMUL_DESC_TRANSA, description, transposed[0]),
    SLOT(CUBLASLT_MATMUL_DESC_TRANSB, description, transposed[1]),
    SLOT(CUBLASLT_MATMUL_DESC_TRANSC, description, transposed[2]),
    SLOT(CUBLASLT_MATMUL_DESC_EPILOGUE, description, epilogue),
    SLOT(CUBLASLT_MATMUL_DESC_BIAS_POINTER, description, bias),
    SLOT(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, description, bias_stride),
    SLOT(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, description, bias_type),
};
const slot of_preference[] = {
    SLOT(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, preference, workspace),
    SLOT(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, preference, schemes),
    SLOT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, preference, alignment[0]),
    SLOT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, preference, alignment[1]),
    SLOT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, preference, alignment[2]),
    SLOT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, preference, alignment[3]),
};
#undef SLOT

template <size_t N>
cublasStatus_t set(const char *call, const slot (&slots)[N], void *in, int attribute, const void *value, size_t bytes)
{
    for (const slot &s : slots)
        if (s.attribute == attribute) {
            if (!value || bytes != s.bytes)
                wrong("%s: attribute %d takes %zu bytes, not %zu", call, attribute, s.bytes, bytes);
            memcpy((char *)in + s.at, value, bytes);
            return CUBLAS_STATUS_SUCCESS;
        }
    wrong("%s: it does not know attribute %d", call, attribute);
}
} // namespace

extern "C" cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t to, size_t, cudaDataType type,
                                                            uint64_t rows, uint64_t cols, int64_t ld)
{
    memset(to, 0, sizeof *to);
    *(layout *)to = {(uint32_t)type, CUBLASLT_ORDER_COL, rows, cols, ld, 1, 0};
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *to, cudaDataType type, uint64_t rows,
                                                     uint64_t cols, int64_t ld)
{
    *to = new cublasLtMatrixLayoutOpaque_t;
    return cublasLtMatrixLayoutInit_internal(*to, sizeof **to, type, rows, cols, ld);
}

extern "C" cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t of)
{
    delete of;
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t in,
                                                           cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                                                           size_t bytes)
{
    return set("cublasLtMatrixLayoutSetAttribute", of_layout, in, attribute, value, bytes);
}

extern "C" cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t to, size_t, cublasComputeType_t compute,
                                                          cudaDataType_t scale)
{
    memset(to, 0, sizeof *to);
    description *d = (description *)to;
    d->compute = (uint32_t)compute;
    d->scale = (uint32_t)scale;
    d->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    d->bias_type = UINT32_MAX;
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *to, cublasComputeType_t compute,
                                                   cudaDataType_t scale)
{
    *to = new cublasLtMatmulDescOpaque_t;
    return cublasLtMatmulDescInit_internal(*to, sizeof **to, compute, scale);
}

extern "C" cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t of)
{
    delete of;
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t in,
                                                         cublasLtMatmulDescAttributes_t attribute, const void *value,
                                                         size_t bytes)
{
    return set("cublasLtMatmulDescSetAttribute", of_description, in, attribute, value, bytes);
}

extern "C" cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t to, size_t)
{
    memset(to, 0, sizeof *to);
    *(preference *)to = {0, {256, 256, 256, 256}, CUBLASLT_REDUCTION_SCHEME_MASK};
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *to)
{
    *to = new cublasLtMatmulPreferenceOpaque_t;
    return cublasLtMatmulPreferenceInit_internal(*to, sizeof **to);
}

extern "C" cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t of)
{
    delete of;
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t in,
                                                               cublasLtMatmulPreferenceAttributes_t attribute,
                                                               const void *value, size_t bytes)
{
    return set("cublasLtMatmulPreferenceSetAttribute", of_preference, in, attribute, value, bytes);
}

/* ---- Handles --------------------------------------------------------------------------------- */

extern "C" cublasStatus_t cublasLtCreate(cublasLtHandle_t *to)
{
    *to = (cublasLtHandle_t) new int;
    return gpus() ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

extern "C" cublasStatus_t cublasLtDestroy(cublasLtHandle_t of)
{
    delete (int *)of;
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

extern "C" const char *cublasLtGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
        return "another status";
    }
}

extern "C" const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return cublasLtGetStatusName(status);
}

extern "C" const char *cublasGetStatusName(cublasStatus_t status)
{
    return cublasLtGetStatusName(status);
}

extern "C" const char *cublasGetStatusString(cublasStatus_t status)
{
    return cublasLtGetStatusName(status);
}

extern "C" cublasStatus_t cublasCreate_v2(cublasHandle_t *to)
{
    return cublasLtCreate((cublasLtHandle_t *)to);
}

extern "C" cublasStatus_t cublasDestroy_v2(cublasHandle_t of)
{
    return cublasLtDestroy((cublasLtHandle_t)of);
}

extern "C" cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

/* The old interface: a StarPU with cuBLAS starts it as well. */
extern "C" cublasStatus_t cublasInit(void)
{
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasShutdown(void)
{
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasSetKernelStream(cudaStream_t)
{
    return CUBLAS_STATUS_SUCCESS;
}
