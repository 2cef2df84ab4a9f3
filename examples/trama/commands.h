/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of trama. Each gets its own arguments, argv[0] being "trama NAME", and returns the exit status. */
#ifndef TRAMA_COMMANDS_H
#define TRAMA_COMMANDS_H

int command_checkpoint(int argc, char **argv);
int command_calibrate(int argc, char **argv);
int command_info(int argc, char **argv);
int command_layout(int argc, char **argv);
int command_onnx(int argc, char **argv);
int command_rehearse(int argc, char **argv);
int command_reshard(int argc, char **argv);
int command_rule(int argc, char **argv);
int command_trace(int argc, char **argv);

#endif
