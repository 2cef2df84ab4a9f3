/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a described machine under libFuzzer; tests/fuzz/run builds and runs it. */
#include <stdint.h>

#include "fuzz_cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_cluster(data, size);
    return 0;
}
