/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA stream of a GPU kernel. trama.h does not include this header, so programs without CUDA need no header of
 * CUDA. The header is installed where Trama was built with CUDA. */
#ifndef TRAMA_CUDA_H
#define TRAMA_CUDA_H

#include <cuda_runtime_api.h>

/* The stream that the GPU kernel of a user's op receives (trama_op_definition.cuda). */
static inline cudaStream_t trama_cuda_stream(void *stream)
{
    return (cudaStream_t)stream;
}

#endif
