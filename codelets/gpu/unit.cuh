/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of bytes, in units of 1, 2, 4, 8 or 16 of them. */
#ifndef CODELETS_UNIT_CUH
#define CODELETS_UNIT_CUH

#include "launch.cuh"

struct alignas(16) unit16 {
    uint64_t at[2];
};

/* Calls f with a value of the unit of so many bytes. */
template <typename F> static void with_unit(size_t bytes, F f)
{
    switch (bytes) {
    case 1:
        return f(uint8_t());
    case 2:
        return f(uint16_t());
    case 4:
        return f(uint32_t());
    case 8:
        return f(uint64_t());
    default:
        return f(unit16());
    }
}

#endif
