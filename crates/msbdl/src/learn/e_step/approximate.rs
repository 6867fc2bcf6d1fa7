//! Approximates posteriors: the mean by conjugate gradients, the covariance by its diagonal.

use ndarray::Array2;

use super::lanes::Lanes;
use super::{Answer, Task};
use crate::support::linalg;
use crate::support::logs::sum_of_logs;

/// Residual, relative to y, at which the conjugate gradients stop.
const TOLERANCE: f64 = 1e-8;
/// Atoms that pass by a residual together.
const ATOMS: usize = 4;

/// Answers `task` for the samples in `rows`, `V::W` at a time.
///
/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn run<V: Lanes>(task: &Task, rows: &[usize], out: &mut Answer) {
    let (n, m, s) = (task.n(), task.m(), task.s);
    let atoms = task.d.t().as_standard_layout().into_owned();
    let norms: Vec<f64> = atoms.rows().into_iter().map(|atom| atom.dot(&atom)).collect();
    let mut system = System { s, atoms: &atoms, used: Vec::new(), v: Vec::new() };
    let mut solutions = Array2::zeros((rows.len(), n));
    let mut y = vec![0.0; n * V::W];
    for (index, group) in rows.chunks(V::W).enumerate() {
        y.fill(0.0);
        for (lane, &row) in group.iter().enumerate() {
            task.y_row(row).iter().enumerate().for_each(|(p, &x)| y[p * V::W + lane] = x);
        }
        system.load::<V>(task, group);
        // SAFETY: y holds n registers.
        let u = unsafe { system.solve::<V>(&y) };
        for lane in 0..group.len() {
            let to = solutions.row_mut(index * V::W + lane);
            to.into_iter().zip(u[lane..].iter().step_by(V::W)).for_each(|(to, u)| *to = *u);
        }
    }
    let t = linalg::product(solutions.view(), task.d);
    for ((&row, u), t) in rows.iter().zip(solutions.rows()).zip(t.rows()) {
        out.quad[row] = task.y_row(row).iter().zip(u).map(|(y, u)| y * u).sum();
        let alive = || task.v_row(row).iter().zip(&norms);
        // The determinant of the diagonal approximation of Sigma.
        out.log_det[row] =
            n as f64 * s.ln() + sum_of_logs(alive().map(|(v, norm)| 1.0 + v * norm / s));
        for (k, (v, norm)) in alive().enumerate() {
            // Sigma = 1 / (|d|^2/s + 1/v) = v - v^2 b
            out.t[row * m + k] = t[k];
            out.b[row * m + k] = norm / (s + v * norm);
            if !out.cov.is_empty() {
                out.cov[k * m + k] += v * s / (s + v * norm);
            }
        }
    }
}

/// s I + D V D^T of some samples, each lane on its own.
struct System<'a> {
    s: f64,
    /// D^T
    atoms: &'a Array2<f64>,
    /// Atoms that any of the samples uses, and their variances: [atom][lane], filled up with
    /// variances of nought to a multiple of `ATOMS`.
    used: Vec<usize>,
    v: Vec<f64>,
}

impl System<'_> {
    fn load<V: Lanes>(&mut self, task: &Task, group: &[usize]) {
        let alive = |k: &usize| group.iter().any(|&row| task.v_row(row)[*k] > 0.0);
        self.used.clear();
        self.used.extend((0..task.m()).filter(alive));
        self.v.clear();
        self.v.resize(self.used.len().next_multiple_of(ATOMS) * V::W, 0.0);
        for (v, &k) in self.v.chunks_exact_mut(V::W).zip(&self.used) {
            v.iter_mut().zip(group).for_each(|(v, &row)| *v = task.v_row(row)[k]);
        }
        self.used.resize(self.used.len().next_multiple_of(ATOMS), 0);
    }

    /// u = (s I + D V D^T)^-1 y
    #[inline(always)]
    unsafe fn solve<V: Lanes>(&self, y: &[f64]) -> Vec<f64> {
        let w = V::W;
        let mut u = vec![0.0; y.len()];
        let (mut r, mut p, mut q) = (y.to_vec(), y.to_vec(), vec![0.0; y.len()]);
        let dots = |a: &[f64], b: &[f64]| {
            let mut sum = [0.0; 16];
            for (a, b) in a.chunks_exact(w).zip(b.chunks_exact(w)) {
                (0..w).for_each(|lane| sum[lane] += a[lane] * b[lane]);
            }
            sum
        };
        let mut rr = dots(&r, &r);
        let goal = rr.map(|x| x * TOLERANCE * TOLERANCE);
        // Exact arithmetic needs at most N steps; rounding a few more.
        for _ in 0..2 * self.atoms.ncols() + 10 {
            if (0..w).all(|lane| rr[lane] <= goal[lane]) {
                break;
            }
            // SAFETY: p and q hold n registers.
            unsafe { self.apply::<V>(&p, &mut q) };
            let pq = dots(&p, &q);
            let step: [f64; 16] =
                std::array::from_fn(|i| if rr[i] > goal[i] { rr[i] / pq[i] } else { 0.0 });
            for i in 0..u.len() {
                u[i] += step[i % w] * p[i];
                r[i] -= step[i % w] * q[i];
            }
            let next = dots(&r, &r);
            for i in 0..u.len() {
                let lane = i % w;
                if rr[lane] > goal[lane] {
                    p[i] = r[i] + next[lane] / rr[lane] * p[i];
                }
            }
            rr = next;
        }
        u
    }

    /// q = s p + D V D^T p
    #[inline(always)]
    unsafe fn apply<V: Lanes>(&self, p: &[f64], q: &mut [f64]) {
        let n = self.atoms.ncols();
        let (p, q) = (p.as_ptr(), q.as_mut_ptr());
        let Some(atoms) = self.atoms.as_slice() else { return };
        // SAFETY: p and q hold n registers, an atom n numbers, v as many registers as `used` atoms.
        unsafe {
            let s = V::splat(self.s);
            for i in 0..n {
                V::load(p.add(i * V::W)).mul(s).store(q.add(i * V::W));
            }
            for (index, some) in self.used.chunks_exact(ATOMS).enumerate() {
                let mut d = [atoms.as_ptr(); ATOMS];
                (0..ATOMS).for_each(|a| d[a] = atoms.as_ptr().add(some[a] * n));
                let mut z = [V::splat(0.0); ATOMS];
                for i in 0..n {
                    let p = V::load(p.add(i * V::W));
                    (0..ATOMS).for_each(|a| z[a] = z[a].fma(V::splat(*d[a].add(i)), p));
                }
                for a in 0..ATOMS {
                    z[a] = z[a].mul(V::load(self.v.as_ptr().add((index * ATOMS + a) * V::W)));
                }
                for i in 0..n {
                    let mut sum = V::load(q.add(i * V::W));
                    (0..ATOMS).for_each(|a| sum = sum.fma(V::splat(*d[a].add(i)), z[a]));
                    sum.store(q.add(i * V::W));
                }
            }
        }
    }
}
