//! Builds the API server that tests talk to, its store and kubectl, once for each version.
//!
//! Nothing is fetched but Go modules, by the Go client and as its own settings say, and Go
//! itself where it is missing. What envtest takes is taken first: a folder of programs that
//! `KUBEBUILDER_ASSETS` names.

mod go;
mod module;

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};

use crate::command;
use crate::stage::say;
use crate::tools::{Tools, find_program, tools_folder, variable};
use go::Go;
use module::Module;

/// Where envtest and the tests look for the programs.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// Where envtest and the tests look for kubectl first.
const KUBECTL: &str = "TEST_ASSET_KUBECTL";

/// One program to build.
#[derive(Debug)]
struct Program {
    name: &'static str,
    package: &'static str,
    time: &'static str,
}

/// The programs, the quickest first; the times are those of two cores.
const PROGRAMS: &[Program] = &[
    Program { name: "etcd", package: "go.etcd.io/etcd/server/v3", time: "a minute" },
    Program {
        name: "kube-apiserver",
        package: "k8s.io/kubernetes/cmd/kube-apiserver",
        time: "10 minutes",
    },
    Program { name: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl", time: "a minute" },
];

/// Where the programs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assets {
    /// The folder with `etcd` and `kube-apiserver`.
    folder: PathBuf,
    /// The path of `kubectl`.
    kubectl: PathBuf,
}

impl Assets {
    /// Tells `tests` where the programs are.
    pub(crate) fn name_to(&self, tests: &mut Command) {
        tests.env(ASSETS, &self.folder).env(KUBECTL, &self.kubectl);
    }
}

/// Builds what is missing, and prints the folder of the programs as the last line.
pub(crate) fn run() -> Result<ExitCode> {
    let assets = provide(&mut Tools::default())?;
    if assets.kubectl.parent() != Some(&assets.folder) {
        say(&format!("kubectl is {}", assets.kubectl.display()));
    }
    say(&assets.folder.display().to_string());
    Ok(ExitCode::SUCCESS)
}

/// Returns where the programs are, and builds those that are missing.
///
/// # Errors
///
/// One cannot be built; the error names the command.
pub(crate) fn provide(tools: &mut Tools) -> Result<Assets> {
    let given = variable(ASSETS);
    if let Some(folder) = given.filter(|folder| is_given(folder)) {
        let kubectl = match kubectl_beside(&folder).or_else(|| find_program("kubectl")) {
            Some(kubectl) => kubectl,
            None => build(tools, &["kubectl"])?.join("kubectl"),
        };
        return Ok(Assets { folder, kubectl });
    }
    let names: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
    let folder = build(tools, &names)?;
    Ok(Assets { kubectl: folder.join("kubectl"), folder })
}

/// Returns whether `folder` has what `KUBEBUILDER_ASSETS` promises, and says so if not.
fn is_given(folder: &Path) -> bool {
    let missing = ["etcd", "kube-apiserver"].into_iter().find(|name| !folder.join(name).is_file());
    if let Some(name) = missing {
        let folder = folder.display();
        say(&format!("{ASSETS} names {folder}, which has no {name}: using the cache instead"));
    }
    missing.is_none()
}

fn kubectl_beside(folder: &Path) -> Option<PathBuf> {
    Some(folder.join("kubectl")).filter(|path| path.is_file())
}

/// Builds those programs of `names` that are missing, and returns their folder.
fn build(tools: &mut Tools, names: &[&str]) -> Result<PathBuf> {
    let module = Module::read()?;
    let folder = tools_folder()?.join(module.folder_name());
    let programs = PROGRAMS.iter().filter(|program| names.contains(&program.name));
    let builds: Vec<Build<'_>> =
        programs.map(|program| Build { program, module: &module, folder: &folder }).collect();
    if builds.iter().all(Build::is_done) {
        return Ok(folder);
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let _lock = lock(&folder)?;
    let go = Go::find(tools, module.go_minor)?;
    builds.iter().filter(|build| !build.is_done()).try_for_each(|build| build.run(&go))?;
    Ok(folder)
}

/// Waits until no other process builds in `folder`.
fn lock(folder: &Path) -> Result<File> {
    let path = folder.join("lock");
    let lock = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
        say(&format!("waiting for another build in {}", folder.display()));
    }
    lock.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(lock)
}

/// One program on its way into the cache.
struct Build<'all> {
    program: &'all Program,
    module: &'all Module,
    folder: &'all Path,
}

impl Build<'_> {
    /// Returns whether the program is there, and was built from the same recipe.
    fn is_done(&self) -> bool {
        let recipe = fs::read_to_string(self.path("recipe"));
        recipe.is_ok_and(|recipe| recipe == self.recipe()) && self.path("").is_file()
    }

    /// Builds it beside its place, and moves it there when it is whole.
    fn run(&self, go: &Go) -> Result<()> {
        let Program { name, package, time } = self.program;
        let (place, part) = (self.path(""), self.path("part"));
        say(&format!("building {name} by {go} into {}: up to {time}, once", place.display()));
        let mut build = go.command(module::FOLDER);
        build.args(["build", "-trimpath", "-ldflags", &self.module.linker_flags()]);
        build.arg("-o").arg(&part).arg(package);
        command::run(&mut build).with_context(|| format!("{name} was not built"))?;
        ensure!(part.is_file(), "`{}` left no program", command::line(&build));
        // The recipe says what the program is: it goes first and comes last.
        let recipe = self.path("recipe");
        _ = fs::remove_file(&recipe);
        fs::rename(&part, &place)
            .and_then(|()| fs::write(&recipe, self.recipe()))
            .with_context(|| format!("cannot put {} in its place", place.display()))
    }

    /// Returns all that the program depends on.
    fn recipe(&self) -> String {
        let Module { text, .. } = self.module;
        format!("{}\n{}\n{text}", self.program.package, self.module.linker_flags())
    }

    fn path(&self, extension: &str) -> PathBuf {
        self.folder.join(self.program.name).with_extension(OsStr::new(extension))
    }
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn a_build_is_done_when_program_and_recipe_are_there() {
        let folder = env::temp_dir().join(format!("fettle-ci-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let module = Module::parse(module::tests::TEXT).unwrap();
        let build = Build { program: &PROGRAMS[0], module: &module, folder: &folder };
        assert!(!build.is_done());
        fs::write(folder.join("etcd"), "").unwrap();
        assert!(!build.is_done());
        fs::write(folder.join("etcd.recipe"), build.recipe()).unwrap();
        assert!(build.is_done());
        let later = Module::parse(&module::tests::TEXT.replace("v3.6.13", "v3.6.14")).unwrap();
        assert!(!Build { program: &PROGRAMS[0], module: &later, folder: &folder }.is_done());
        fs::remove_dir_all(&folder).unwrap();
    }
}
