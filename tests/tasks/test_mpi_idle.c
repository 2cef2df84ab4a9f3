/* SPDX-License-Identifier: Apache-2.0 */
/* Idleness on several ranks: nobody polls for messages that nobody sends. */
#include "idle.h"

TESTS(an_idle_program_burns_no_cores, an_idle_eager_program_burns_no_cores)
