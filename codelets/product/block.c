/* SPDX-License-Identifier: Apache-2.0 */
/* Products of blocks, whose sums stay in registers: as many vectors of the CPU's width as it has registers for. */
#include "block.h"

#define UNROLLED _Pragma("GCC unroll 8")

/* Columns [from, to) of a block: `height` rows of `width` vectors of `bytes` bytes at a time. */
#define BLOCK_COLUMNS(name, target, type, bytes, height, width)                                                        \
    target static void name(int64_t from, int64_t to, int64_t k, const void *a, const void *b, int64_t ldb, void *c,   \
                            int64_t ldc)                                                                               \
    {                                                                                                                  \
        typedef type vector __attribute__((vector_size(bytes), aligned(sizeof(type))));                                \
        enum { LENGTH = bytes / sizeof(type) };                                                                        \
        for (int row = 0; row < BLOCK_ROWS; row += (height))                                                           \
            for (int64_t column = from; column < to; column += (width) * (int)LENGTH) {                                \
                vector sum[height][width];                                                                             \
                type *out = (type *)c + row * ldc + column;                                                            \
                UNROLLED for (int r = 0; r < (height); r++) UNROLLED for (int v = 0; v < (width); v++) sum[r][v] =     \
                    *(const vector *)(out + r * ldc + v * (int)LENGTH);                                                \
                for (int64_t i = 0; i < k; i++) {                                                                      \
                    const type *x = (const type *)a + i * BLOCK_ROWS + row, *y = (const type *)b + i * ldb + column;   \
                    vector line[width];                                                                                \
                    UNROLLED for (int v = 0; v < (width); v++) line[v] = *(const vector *)(y + v * (int)LENGTH);       \
                    UNROLLED for (int r = 0; r < (height); r++) UNROLLED for (int v = 0; v < (width); v++)             \
                        sum[r][v] += x[r] * line[v];                                                                   \
                }                                                                                                      \
                UNROLLED for (int r = 0; r < (height); r++) UNROLLED for (int v = 0; v < (width); v++) *               \
                    (vector *)(out + r * ldc + v * (int)LENGTH) = sum[r][v];                                           \
            }                                                                                                          \
    }

/* All parts at once by vectors of 3 a row where they fit; vectors of 1 or 2 a row for fewer parts. */
#define BLOCK_ADD(name, target, type, bytes, height, one)                                                              \
    BLOCK_COLUMNS(name##_3, target, type, bytes, height, 3)                                                            \
    BLOCK_COLUMNS(name##_2, target, type, bytes, height, 2)                                                            \
    BLOCK_COLUMNS(name##_1, target, type, bytes, height, one)                                                          \
    static void name(int parts, int64_t k, const void *a, const void *b, int64_t ldb, void *c, int64_t ldc)            \
    {                                                                                                                  \
        (parts == 3   ? name##_3                                                                                       \
         : parts == 2 ? name##_2                                                                                       \
                      : name##_1)(0, parts * (int64_t)(BLOCK_BYTES / sizeof(type)), k, a, b, ldb, c, ldc);             \
    }

/* Vectors of 64 bytes fill 24 of 32 registers, others 12 of 16. */
#define BLOCK_TYPE(suffix, type)                                                                                       \
    BLOCK_ADD(add_##suffix, , type, 16, 4, 2)                                                                          \
    BLOCKS_OF_X86(suffix, type)                                                                                        \
    block_add *block_add_##suffix(void)                                                                                \
    {                                                                                                                  \
        return CHOICE_OF_X86(suffix) add_##suffix;                                                                     \
    }
/* With AddressSanitizer GCC 12 puts vectors of 64 bytes at multiples of 32 (its bug 110027). */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define BLOCKS_OF_X86(suffix, type)                                                                                    \
    BLOCK_ADD(add_avx2_##suffix, __attribute__((target("arch=x86-64-v3"))), type, 32, 4, 2)                            \
    BLOCK_ADD(add_avx512_##suffix, __attribute__((target("arch=x86-64-v4"))), type, 64, 8, 1)
#define CHOICE_OF_X86(suffix)                                                                                          \
    __builtin_cpu_supports("x86-64-v4") ? add_avx512_##suffix : __builtin_cpu_supports("x86-64-v3") ? add_avx2_##suffix:
#else
#define BLOCKS_OF_X86(suffix, type)
#define CHOICE_OF_X86(suffix)
#endif

BLOCK_TYPE(f32, float)
BLOCK_TYPE(f64, double)
