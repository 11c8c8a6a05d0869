dnl The macros of configure.ac that are our own.

dnl DM_TRY_FLAGS(FLAGS): sets dm_taken to whether the compiler takes FLAGS without a warning.
AC_DEFUN([DM_TRY_FLAGS], [
    AC_MSG_CHECKING([whether $CC takes $1])
    dm_saved_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $1"
    AC_LINK_IFELSE([AC_LANG_PROGRAM], [dm_taken=yes], [dm_taken=no])
    CFLAGS=$dm_saved_CFLAGS
    AC_MSG_RESULT([$dm_taken])
])

dnl DM_WARNINGS(VARIABLE, FLAGS): those of FLAGS that the compiler knows.
AC_DEFUN([DM_WARNINGS], [
    $1=
    for dm_flag in m4_normalize([$2]); do
        DM_TRY_FLAGS([$dm_flag])
        AS_IF([test $dm_taken = yes], [$1="$$1 $dm_flag"])
    done
    AC_SUBST([$1])
])

dnl DM_SANITIZER(VARIABLE, LIST): the flags for -fsanitize=LIST; LIST may be "no".
AC_DEFUN([DM_SANITIZER], [
    $1=
    AS_IF([test "$2" != no], [
        $1="-fsanitize=$2 -fno-sanitize-recover=all -fno-omit-frame-pointer -DDM_LOCK_CHECKS"
        DM_TRY_FLAGS([$$1])
        AS_IF([test $dm_taken = no],
            [AC_MSG_ERROR([$CC cannot do that: is its run-time library installed?])])
    ])
    AC_SUBST([$1])
])
