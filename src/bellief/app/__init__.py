"""`bellief app`: a local page that shows what a policy is worth, by the same functions as the command line.

`bellief.app.serve.serve` starts it. The server speaks JSON to scripts of its own (`static`), keeps one workspace for
each tab (`workspaces`), and refuses requests without its token (`security`). It needs the extra `bellief[app]`.
"""
