/* SPDX-License-Identifier: Apache-2.0 */
/* For kernels on GPUs: streams with their own type. trama.h does not include this header, so that programs without CUDA
 * need none of its headers; it is installed where Trama was built with CUDA. */
#ifndef TRAMA_CUDA_H
#define TRAMA_CUDA_H

#include <cuda_runtime_api.h>

/* The stream that a kernel of an op of one's own is given (trama_op_definition.cuda). */
static inline cudaStream_t trama_cuda_stream(void *stream)
{
    return (cudaStream_t)stream;
}

#endif
