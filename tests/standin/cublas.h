/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for CUDA (standin.h): what lies behind cuBLASLt's descriptors, which are opaque bytes. */
#ifndef STANDIN_CUBLAS_H
#define STANDIN_CUBLAS_H

#include "standin.h"

#include <cublasLt.h>
#include <cublas_api.h>

namespace standin
{
struct layout {
    uint32_t type;
    int32_t order;
    uint64_t rows, cols;
    int64_t ld;
    int32_t batches;
    int64_t stride;
};

struct description {
    uint32_t compute, scale, epilogue;
    int32_t pointer_mode, transposed[3];
    const void *bias;
    int64_t bias_stride;
    uint32_t bias_type;
};

struct preference {
    uint64_t workspace;
    uint32_t alignment[4], schemes;
};

struct algorithm {
    uint32_t mark, alignment[4];
    uint64_t workspace, product; /* product: what it was chosen for */
};

static_assert(sizeof(layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "room for a layout");
static_assert(sizeof(description) <= sizeof(cublasLtMatmulDescOpaque_t), "room for a description");
static_assert(sizeof(preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t), "room for a preference");
static_assert(sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t), "room for an algorithm");
} // namespace standin

#endif
