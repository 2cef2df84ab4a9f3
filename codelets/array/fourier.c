/* SPDX-License-Identifier: Apache-2.0 */
/* fft, rfft and irfft along one dim: blocks of lines go into planes of real and imaginary parts, are transformed side
 * by side, and come out. */
#include <string.h>

#include "along.h"
#include "fourier_line.h"
#include "ops.h"

/* LINES: the most lines of a block. BYTES: of its planes, where a line leaves room for more than one. */
enum { LINES = 32, BYTES = 512 << 10 };

/* A call's tables and planes. */
typedef struct transform {
    fourier f;
    int64_t n;     /* of the line, of real numbers or of complex ones */
    int64_t lines; /* of a block, at most */
    bool inverse;
    double factor, inner; /* of all results; and of elements of a half of a spectrum whose conjugates it leaves out */
    void *plane[4];       /* [lines fourier_length] re, im, and others */
    void *turn;           /* [n / 2 + 1][2]: e^(-2 pi i k / n); NULL where no line is halved */
} transform;

/* An element of a half of a spectrum that is its own conjugate. */
static bool is_end(const transform *t, int64_t k)
{
    return k == 0 || 2 * k == t->n;
}

#define TYPE float
#define NAME(name) name##_f32
#include "fourier_block.h"

#define TYPE double
#define NAME(name) name##_f64
#include "fourier_block.h"

/* n: of the line; length: of the transform that computes it. part: the type of its numbers. */
static void run(const trama_call *call, int64_t n, int64_t length, bool inverse, trama_dtype part, loop_row *row)
{
    const trama_attributes *with = call->attributes;
    const size_t size = trama_dtype_size(part);
    scratch memory = {0};
    transform t = {
        .n = n, .inverse = inverse, .factor = with->real[FOURIER_FACTOR], .inner = with->real[FOURIER_INNER]};
    const bool made = length > 0 && (part == TRAMA_F32 ? fourier_f32 : fourier_f64)(&t.f, length, &memory, 0);
    if (made) {
        const int64_t fitting = BYTES / (4 * fourier_length(&t.f) * (int64_t)size);
        t.lines = fitting < 1 ? 1 : fitting < LINES ? fitting : LINES;
        const size_t bytes = (size_t)(t.lines * fourier_length(&t.f)) * size;
        t.plane[0] = scratch_take(&memory, 1, 4 * bytes);
        for (int i = 1; i < 4 && t.plane[0]; i++)
            t.plane[i] = (char *)t.plane[0] + (size_t)i * bytes;
        const bool halved = length != n;
        if (halved)
            t.turn = scratch_take(&memory, 2, 2 * ((size_t)n / 2 + 1) * size);
        if (t.turn)
            (part == TRAMA_F32 ? turns_f32 : turns_f64)(n, t.turn);
        if (t.plane[0] && (t.turn || !halved))
            along_run(call, (int)with->integer[FOURIER_AXIS], row, &t);
    }
    scratch_free(&memory);
}

static bool is_narrow(trama_dtype dtype)
{
    return dtype == TRAMA_C64 || dtype == TRAMA_F32;
}

void cpu_fft(const trama_call *call)
{
    const trama_view *x = &call->in[0];
    const int64_t n = x->extent[call->attributes->integer[FOURIER_AXIS]];
    const bool narrow = is_narrow(x->dtype);
    run(call, n, n, call->attributes->integer[FOURIER_INVERSE], narrow ? TRAMA_F32 : TRAMA_F64,
        narrow ? fft_f32 : fft_f64);
}

/* An even number of real ones are half as many complex ones. */
static int64_t real_length(int64_t n)
{
    return n % 2 ? n : n / 2;
}

void cpu_rfft(const trama_call *call)
{
    const trama_view *x = &call->in[0];
    const int64_t n = x->extent[call->attributes->integer[FOURIER_AXIS]];
    const bool narrow = is_narrow(x->dtype);
    run(call, n, real_length(n), false, narrow ? TRAMA_F32 : TRAMA_F64, narrow ? rfft_f32 : rfft_f64);
}

void cpu_irfft(const trama_call *call)
{
    const trama_view *out = &call->out[0];
    const int64_t n = out->extent[call->attributes->integer[FOURIER_AXIS]];
    const bool narrow = is_narrow(out->dtype);
    run(call, n, real_length(n), true, narrow ? TRAMA_F32 : TRAMA_F64, narrow ? irfft_f32 : irfft_f64);
}
