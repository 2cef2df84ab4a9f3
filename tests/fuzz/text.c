/* SPDX-License-Identifier: Apache-2.0 */
/* The text forms under libFuzzer; tests/fuzz/run builds and runs it. */
#include <stdint.h>

#include "fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_text(data, size);
    return 0;
}
