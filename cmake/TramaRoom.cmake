# SPDX-License-Identifier: Apache-2.0
# A room: one object library, with the include paths of its folders and of the rooms that it may see.

add_library(trama_flags INTERFACE)
target_compile_definitions(trama_flags INTERFACE
    TRAMA_HAVE_MPI=${TRAMA_WITH_MPI} TRAMA_HAVE_CUDA=${TRAMA_WITH_CUDA} TRAMA_HAVE_NCCL=${TRAMA_WITH_NCCL})
target_compile_options(trama_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wshadow;-Wstrict-prototypes;-Wmissing-prototypes;-Wpointer-arith;-Wvla>
    $<$<COMPILE_LANGUAGE:C>:-Wwrite-strings;-Wformat=2;-Wundef;-Wno-format-nonliteral;-Wno-unused-parameter>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall>)

# trama_room(<name> [FOLDERS <folder>...] [WITHOUT <file>...] [SEES <room>...] [LINKS <target>...])
# Compiles every *.c (and *.cu, with CUDA) of this folder, or of the FOLDERS in it, which see each other. A room may have
# no source. WITHOUT: files that are not compiled into the room.
function(trama_room name)
    cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "FOLDERS;WITHOUT;SEES;LINKS")
    set(own "${CMAKE_CURRENT_SOURCE_DIR}")
    if(ARG_FOLDERS)
        list(TRANSFORM ARG_FOLDERS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" OUTPUT_VARIABLE own)
    endif()
    set_property(GLOBAL PROPERTY TRAMA_FOLDER_${name} "${own}")
    set_property(GLOBAL APPEND PROPERTY TRAMA_FOLDERS "${own}")
    set(folders "${own}")
    foreach(room IN LISTS ARG_SEES)
        get_property(seen GLOBAL PROPERTY TRAMA_FOLDER_${room})
        list(APPEND folders "${seen}")
    endforeach()

    list(TRANSFORM own APPEND /*.c OUTPUT_VARIABLE patterns)
    if(TRAMA_WITH_CUDA)
        list(TRANSFORM own APPEND /*.cu OUTPUT_VARIABLE kernels)
        list(APPEND patterns ${kernels})
    endif()
    file(GLOB sources CONFIGURE_DEPENDS ${patterns})
    list(TRANSFORM ARG_WITHOUT PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
    list(REMOVE_ITEM sources ${ARG_WITHOUT})
    if(TRAMA_CUDA_STANDIN)
        set(kernels ${sources})
        list(FILTER kernels INCLUDE REGEX "[.]cu$")
        trama_standin_source(${kernels})
    endif()
    if(sources)
        add_library(${name} OBJECT ${sources})
        target_include_directories(${name} PRIVATE ${folders})
        target_link_libraries(${name} PRIVATE trama_flags ${ARG_LINKS})
        if(NOT TRAMA_EXPORT_ALL)
            set_target_properties(${name} PROPERTIES C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
                CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
        endif()
        set_property(GLOBAL APPEND PROPERTY TRAMA_ROOMS ${name})
    endif()
endfunction()

# trama_math(<room>): lets pointwise loops vectorise, while every value stays that of IEEE 754 (so never -ffast-math).
# With GPUs, a * b + c has two roundings on CPU and GPU, so that both give the same bits.
function(trama_math name)
    if(TARGET ${name})
        target_compile_options(${name} PRIVATE
            $<$<COMPILE_LANGUAGE:C>:-fno-math-errno;-fno-trapping-math;-fcx-fortran-rules> $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
        if(TRAMA_WITH_CUDA)
            target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:-ffp-contract=off>)
        endif()
    endif()
endfunction()
