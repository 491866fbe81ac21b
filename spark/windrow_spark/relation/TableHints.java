package windrow;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** Tells scans of our tables what else the query wants: the names of files, or only some rows. */
public final class TableHints extends Rule {
    public TreeNode apply(TreeNode plan) {
        return naming((LogicalPlan) plan.transform(new Limiting()));
    }

    private static LogicalPlan naming(LogicalPlan plan) {
        LogicalPlan changed = namesFiles((SEQ) plan.expressions())
            ? (LogicalPlan) plan.transform(new Naming()) : plan;
        SEQ children = (SEQ) changed.children();
        List named = new ArrayList();
        boolean isSame = true;
        for (int i = 0; i < children.size(); i++) {
            LogicalPlan child = naming((LogicalPlan) children.apply(i));
            isSame &= child == children.apply(i);
            named.add(child);
        }
        return isSame ? changed
            : (LogicalPlan) changed.withNewChildren((SEQ) PythonUtils.toSeq(named));
    }

    private static boolean namesFiles(SEQ expressions) {
        for (int i = 0; i < expressions.size(); i++) {
            Expression expression = (Expression) expressions.apply(i);
            if (expression instanceof InputFileName || expression instanceof InputFileBlockStart
                || expression instanceof InputFileBlockLength) return true;
            if (namesFiles((SEQ) expression.children())) return true;
        }
        return false;
    }

    private static LogicalPlan with(LogicalRelation leaf, TableIndex index) {
        HadoopFsRelation files = (HadoopFsRelation) leaf.relation();
        Object[] arguments = new Object[leaf.productArity()];
        for (int i = 1; i < arguments.length; i++) arguments[i] = leaf.productElement(i);
        arguments[0] = new HadoopFsRelation(
            index, files.partitionSchema(), files.dataSchema(), files.bucketSpec(),
            files.fileFormat(), files.options(), files.sparkSession());
        return (LogicalPlan) leaf.makeCopy(arguments);
    }

    private static TableIndex indexOf(LogicalRelation leaf) {
        return (TableIndex) ((HadoopFsRelation) leaf.relation()).location();
    }

    private static final class Naming extends AbstractPartialFunction {
        public boolean isDefinedAt(Object node) {
            return TableStrategy.isOurs(node) && !indexOf((LogicalRelation) node).names;
        }

        public Object applyOrElse(Object node, Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            LogicalRelation leaf = (LogicalRelation) node;
            return with(leaf, indexOf(leaf).naming());
        }
    }

    /** Tells a scan how many of its rows are enough. */
    private static final class Limiting extends AbstractPartialFunction {
        public boolean isDefinedAt(Object node) {
            return node instanceof LocalLimit && limited((LocalLimit) node) != null;
        }

        public Object applyOrElse(Object node, Function1 other) {
            return isDefinedAt(node) ? limited((LocalLimit) node) : other.apply(node);
        }

        private LogicalPlan limited(LocalLimit limit) {
            if (!(limit.limitExpr() instanceof Literal)) return null;
            long rows = ((Number) ((Literal) limit.limitExpr()).value()).longValue();
            LogicalRelation leaf = TableStrategy.leafOf((LogicalPlan) limit.child());
            if (leaf == null || rows < 1) return null;
            TableIndex index = indexOf(leaf);
            if (index.limit != TableIndex.NO_LIMIT && index.limit <= rows) return null;
            return (LogicalPlan) limit.transform(new Replacing(leaf, with(leaf, index.limited(rows))));
        }
    }

    /** Replaces one plan with another. */
    private static final class Replacing extends AbstractPartialFunction {
        private final LogicalPlan out;
        private final LogicalPlan in;

        Replacing(LogicalPlan out, LogicalPlan in) {
            this.out = out;
            this.in = in;
        }

        public boolean isDefinedAt(Object node) {
            return node == out;
        }

        public Object applyOrElse(Object node, Function1 other) {
            return node == out ? in : other.apply(node);
        }
    }
}
