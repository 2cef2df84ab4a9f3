// SPDX-License-Identifier: Apache-2.0
// For tests of kernels on a GPU: arrays of any element type, shape and alignment, with random numbers, and calls.
#ifndef TESTS_CODELETS_ARRAYS_HPP
#define TESTS_CODELETS_ARRAYS_HPP

#include <check.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernel.h"
#include "number.h"

// How elements lie in memory: without gaps; the same, but one element off what is aligned; as an aligned block of a
// larger array; every second one; in column-major order.
enum order { PACKED, SHIFTED, BLOCK, SPARSE, TURNED, N_ORDERS };

// The sequence of a seed, of numbers from 0 to 1.
struct randoms {
    uint64_t state;
    double next()
    {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (double)(state >> 11) * 0x1p-53;
    }
    int below(int n)
    {
        return (int)(next() * n);
    }
};

class array
{
  public:
    array(trama_dtype dtype, const std::vector<int64_t> &shape, order how, uint64_t seed)
    {
        const int n = (int)shape.size();
        int64_t step = how == SPARSE ? 2 : 1, first = how == SHIFTED ? 1 : 0, last = 0;
        view.dtype = dtype;
        view.ndim = n;
        for (int i = 0; i < n; i++) {
            const int d = how == TURNED ? i : n - 1 - i;
            const int64_t extent = shape[(size_t)d];
            view.extent[d] = view.global[d] = extent;
            view.stride[d] = step;
            first += how == BLOCK ? 16 * step : 0;
            last += (extent - 1) * step;
            step *= how == BLOCK ? (extent + 31) / 16 * 16 : extent;
        }
        start = (size_t)first * size();
        bytes = start + (size_t)(count() ? last + 1 : 0) * size();
        allocate();
        memset(memory, 0xa5, bytes);
        randoms random = {seed};
        for (int64_t i = 0; i < count(); i++) {
            const double x = random.next() * 18 - 9;
            put(i, dtype == TRAMA_BOOL ? x > 0 : dtype == TRAMA_U8 ? std::fabs(x * 20) : x);
        }
    }
    array(const array &other) : view(other.view), bytes(other.bytes), start(other.start)
    {
        allocate();
        memcpy(memory, other.memory, bytes);
    }
    array &operator=(const array &) = delete;
    ~array()
    {
        free(memory);
    }

    size_t size() const
    {
        return trama_dtype_size(view.dtype);
    }
    int64_t count() const
    {
        int64_t n = 1;
        for (int d = 0; d < view.ndim; d++)
            n *= view.extent[d];
        return n;
    }
    // Puts x at element i in row-major order.
    void put(int64_t i, double x)
    {
        int64_t at = 0;
        for (int d = view.ndim - 1; d >= 0; d--) {
            at += i % view.extent[d] * view.stride[d];
            i /= view.extent[d];
        }
        switch (view.dtype) {
#define PUT(name, type, unused)                                                                                        \
    case name:                                                                                                         \
        ((type *)view.data)[at] = OF_REAL(name, x);                                                                   \
        break;
            EACH_DTYPE(PUT, )
#undef PUT
        default:
            ck_abort_msg("no element type");
        }
    }
    // The same bytes, of elements and of what lies around them, or nearly the same numbers: in roundings of the type,
    // relative to the larger of `least` and the other's. One NaN is as good as another.
    bool equals(const array &other, double units = 0, double least = 1) const
    {
        for (size_t i = 0; i < bytes; i++)
            if (memory[i] != other.memory[i] && !near(other, i / size() * size(), units, least))
                return false;
        return bytes == other.bytes;
    }

    trama_view view = {};

  private:
    void allocate()
    {
        void *aligned = nullptr;
        ck_assert(!posix_memalign(&aligned, 64, bytes + 1));
        memory = (unsigned char *)aligned;
        view.data = memory + start;
    }
    double number(size_t at) const
    {
        switch (view.dtype) {
#define NUMBER(name, type, unused)                                                                                     \
    case name:                                                                                                         \
        return (double)LOAD(name, *(const type *)(memory + at));
            EACH_DTYPE(NUMBER, )
#undef NUMBER
        default:
            return 0;
        }
    }
    bool near(const array &other, size_t at, double units, double least) const
    {
        static const double rounding[] = {0x1p-24, 0x1p-53, 0, 0, 0, 0x1p-8, 0x1p-11};
        const double x = number(at), y = other.number(at);
        if (std::isnan(y) || std::isinf(y))
            return std::isnan(y) && std::isnan(x);
        return units > 0 && std::fabs(x - y) <= units * rounding[view.dtype] * std::fmax(least, std::fabs(y));
    }

    unsigned char *memory = nullptr;
    size_t bytes = 0, start = 0;
};

// A call on views: the results, then the operands.
struct call_on {
    call_on(const trama_op *op, const trama_attributes &attributes, int n_out, const std::vector<trama_view> &views)
        : view(views),
          with(attributes), call{op, &with, (int)views.size() - n_out, n_out, view.data() + n_out, view.data()}
    {
    }
    call_on(const call_on &) = delete;
    std::vector<trama_view> view;
    trama_attributes with;
    trama_call call;
};

#endif
