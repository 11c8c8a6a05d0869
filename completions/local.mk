# Completion of shells, under the names of the programs: the shell loads a file when a program's name is typed.
nodist_bashcompletion_DATA = completions/bash/dmutex completions/bash/dmutex-run
nodist_zshcompletion_DATA = completions/zsh/_dmutex completions/zsh/_dmutex-run

$(nodist_bashcompletion_DATA): completions/dmutex.bash
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $(srcdir)/completions/dmutex.bash $@
$(nodist_zshcompletion_DATA): completions/dmutex.zsh
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $(srcdir)/completions/dmutex.zsh $@

CLEANFILES += $(nodist_bashcompletion_DATA) $(nodist_zshcompletion_DATA)
EXTRA_DIST += completions/dmutex.bash completions/dmutex.zsh
