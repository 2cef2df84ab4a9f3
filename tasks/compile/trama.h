/* SPDX-License-Identifier: Apache-2.0 */
/* Trama: distributed tensors for HPC applications in C. This header includes every other public header but trama_mpi.h,
 * trama_cuda.h and trama_onnx.h. */
#ifndef TRAMA_H
#define TRAMA_H

#include "trama_array.h"
#include "trama_attention.h"
#include "trama_auto.h"
#include "trama_base.h"
#include "trama_checkpoint.h"
#include "trama_complete.h"
#include "trama_complex.h"
#include "trama_composed.h"
#include "trama_context.h"
#include "trama_convolution.h"
#include "trama_dataset.h"
#include "trama_drawing.h"
#include "trama_eager.h"
#include "trama_executable.h"
#include "trama_feeder.h"
#include "trama_fourier.h"
#include "trama_layout.h"
#include "trama_mesh.h"
#include "trama_network.h"
#include "trama_npy.h"
#include "trama_op.h"
#include "trama_op_define.h"
#include "trama_op_validate.h"
#include "trama_ops.h"
#include "trama_optimizer.h"
#include "trama_program.h"
#include "trama_random.h"
#include "trama_rehearsal.h"
#include "trama_reshard_plan.h"
#include "trama_rule.h"
#include "trama_save.h"
#include "trama_state.h"
#include "trama_watch.h"
#include "trama_wrap.h"

#endif
