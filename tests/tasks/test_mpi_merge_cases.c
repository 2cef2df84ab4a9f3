/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient merge over ranks: what holds for any values, as in one rank. */
#include "merging_cases.h"

TESTS(MERGING_CASES)
