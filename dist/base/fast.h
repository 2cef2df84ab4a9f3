/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for the CPU that runs them. */
#ifndef FAST_H
#define FAST_H

/* Compiles a function for several instruction sets, chosen when the program is loaded. Sanitizers run too late for it.
 */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) &&                       \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FAST __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define FAST
#endif

#endif
