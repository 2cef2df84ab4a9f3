/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for CUDA (standin.h): what it says of its GPUs, and the names of errors. The GPUs are small ones of
 * compute capability 9.0 on buses 80, 81, ... of domain 0. */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace standin;

namespace
{
enum { FIRST_BUS = 0x80, MULTIPROCESSORS = 4, KIB = 1024 };

bool exists(int device)
{
    return device >= 0 && device < gpus();
}

int attribute(cudaDeviceAttr which, int device)
{
    switch (which) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
        return 1024;
    case cudaDevAttrMaxBlockDimZ:
        return 64;
    case cudaDevAttrMaxGridDimX:
        return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
        return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        return 48 * KIB;
    case cudaDevAttrWarpSize:
        return 32;
    case cudaDevAttrMultiProcessorCount:
        return MULTIPROCESSORS;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        return 2048;
    case cudaDevAttrL2CacheSize:
        return 1024 * KIB;
    case cudaDevAttrComputeCapabilityMajor:
        return 9;
    case cudaDevAttrComputeCapabilityMinor:
        return 0;
    case cudaDevAttrPciBusId:
        return FIRST_BUS + board(device);
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
    case cudaDevAttrIntegrated:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrMemoryPoolsSupported:
        return 0;
    case cudaDevAttrComputeMode:
        return getenv("TRAMA_STANDIN_EXCLUSIVE") ? cudaComputeModeExclusiveProcess : cudaComputeModeDefault;
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrGpuOverlap:
        return 1;
    case cudaDevAttrAsyncEngineCount:
        return 2;
    default:
        wrong("cudaDeviceGetAttribute: it does not know attribute %d", (int)which);
    }
}
} // namespace

extern "C" cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device)
{
    return answer([&] {
        if (!exists(device))
            return cudaErrorInvalidDevice;
        *value = attribute(which, device);
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
    return answer([&] {
        size_t free;
        if (!exists(device))
            return cudaErrorInvalidDevice;
        memset(p, 0, sizeof *p);
        snprintf(p->name, sizeof p->name, "stand-in for a GPU");
        snprintf(p->uuid.bytes, sizeof p->uuid.bytes, "stand-in %d", device);
        device_room(device, &free, &p->totalGlobalMem);
        p->sharedMemPerBlock = (size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlock, device);
        p->warpSize = 32;
        p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
        p->maxThreadsDim[2] = 64;
        p->maxGridSize[0] = 0x7fffffff;
        p->maxGridSize[1] = p->maxGridSize[2] = 65535;
        p->major = 9;
        p->multiProcessorCount = MULTIPROCESSORS;
        p->maxThreadsPerMultiProcessor = 2048;
        p->l2CacheSize = attribute(cudaDevAttrL2CacheSize, device);
        p->canMapHostMemory = p->unifiedAddressing = p->concurrentKernels = 1;
        p->asyncEngineCount = 2;
        p->pciBusID = FIRST_BUS + board(device);
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaDeviceGetPCIBusId(char *text, int room, int device)
{
    return answer([&] {
        if (!exists(device))
            return cudaErrorInvalidDevice;
        snprintf(text, (size_t)room, "0000:%02X:00.0", FIRST_BUS + board(device));
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

extern "C" cudaError_t cudaDriverGetVersion(int *version)
{
    *version = gpus() ? CUDART_VERSION : 0;
    return cudaSuccess;
}

/* ---- Names of errors ------------------------------------------------------------------------- */

namespace
{
const struct {
    cudaError_t error;
    const char *name, *words;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable", "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};
} // namespace

extern "C" const char *cudaGetErrorName(cudaError_t error)
{
    for (const auto &e : errors)
        if (e.error == error)
            return e.name;
    return "unrecognized error code";
}

extern "C" const char *cudaGetErrorString(cudaError_t error)
{
    for (const auto &e : errors)
        if (e.error == error)
            return e.words;
    return "unrecognized error code";
}
